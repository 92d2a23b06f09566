"""Generated from proto/; regenerate with `make proto`, never edit."""
