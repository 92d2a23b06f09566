#!/usr/bin/env bash
# Runs under miri what it can run of the unsafe code: the thread team and the buffers that it shares. The rest is vector
# instructions, calls of the system and of libraries, which miri does not know.
set -euo pipefail

cd "$(dirname "$0")/../.."
if ! rustup run nightly cargo miri --version >/dev/null 2>&1; then
    echo "miri is missing: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 1
fi
# Neither the wrapper of `make test`, nor the files of other compilers.
unset RUSTC_WORKSPACE_WRAPPER
export CARGO_TARGET_DIR=.cache/miri
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation"
for tests in cpu::shared:: cpu::tests::team::; do
    rustup run nightly cargo miri test --locked --package toolgate-encoder --lib -- "$tests"
done
