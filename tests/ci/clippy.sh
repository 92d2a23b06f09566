#!/usr/bin/env bash
# Stands between cargo and rustc for the workspace's own crates (RUSTC_WORKSPACE_WRAPPER): compiles them with clippy's
# lints, warnings as errors. So one build is linted and tested, where `cargo clippy` checks every dependency once more.
# Not for sh: dash drops variables such as CARGO_BIN_EXE_toolgate-encoder-worker, whose names it can't write.
exec clippy-driver "$@" -D warnings
