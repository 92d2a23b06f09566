#!/usr/bin/env bash
# The workspace compiles with the oldest Rust that it promises (rust-version). Where the compiler in use is that one, every
# other step checks it. Where it is newer, the oldest checks the workspace here, if it is installed beside it.
set -euo pipefail

cd "$(dirname "$0")/../.."
promised=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
[[ -n $promised ]] || { echo "Cargo.toml: no rust-version" >&2; exit 1; }

# Places that say the same, outside the workspace.
disagree=no
agree() {
    if ! grep -qF "$2" "$1"; then
        echo "$1: does not say '$2', as Cargo.toml promises" >&2
        disagree=yes
    fi
}
agree client-sdk/conformance/drivers/rust/Cargo.toml "rust-version = \"$promised\""
agree client-sdk/rust/README.md "Rust $promised and newer"
agree docs/clients.md "Rust $promised and newer"
[[ $disagree == no ]] || exit 1

# Prints the name of an installed toolchain of the promised version.
installed_toolchain() {
    { rustup toolchain list 2>/dev/null || true; } | sed -n "s/^\(${promised/./\\.}[.-][^ ]*\).*/\1/p" | tail -n 1
}

used=$(rustc --version | sed -E 's/^rustc ([0-9]+\.[0-9]+).*/\1/')
if [[ $used == "$promised" ]]; then
    echo "Rust $promised is the oldest supported, and the one in use"
elif [[ $(printf '%s\n%s\n' "$used" "$promised" | sort -V | head -n 1) == "$used" ]]; then
    echo "Rust $used is older than $promised, the oldest supported: rustup update" >&2
    exit 1
elif toolchain=$(installed_toolchain) && [[ -n $toolchain ]]; then
    # Neither the wrapper of `make test` nor its folder: both belong to the compiler in use.
    unset RUSTC_WORKSPACE_WRAPPER
    CARGO_TARGET_DIR=.cache/oldest-rust rustup run "$toolchain" cargo check --workspace --all-targets --locked
    echo "Rust $promised, the oldest supported, compiles the workspace"
else
    # No registry has toolchains, so a machine without the oldest one cannot get it by itself.
    echo "Rust $used is in use: nothing here compiles with $promised, the oldest supported (rustup toolchain install $promised)"
fi
