#!/usr/bin/env bash
# Stands between cargo and rustc for the workspace's own crates (RUSTC_WORKSPACE_WRAPPER): compiles them with clippy's
# lints, warnings as errors. So one build is linted and tested, where `cargo clippy` checks every dependency once more.
# Not for sh: dash drops variables such as CARGO_BIN_EXE_toolgate-encoder-worker, whose names it can't write.
flags=()
if [ "${CARGO_PKG_NAME:-}" = toolgate-fuzz ]; then
    # For tests/fuzz/smoke.sh: libFuzzer runs nothing that has no counters.
    flags=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=1
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table)
fi
exec clippy-driver "$@" -D warnings "${flags[@]}"
