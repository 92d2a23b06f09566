"""Runs the conformance cases against every language's driver."""
