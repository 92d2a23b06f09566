#!/usr/bin/env bash
# Builds the driver on the packaged crates: `build.sh FOLDER`, with the .crate files that `cargo package` left;
# without a folder, target/package of the repository. Prints the driver's path.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
packages=$(cd "${1:-$here/../../../../target/package}" && pwd)
unpacked=$here/target/packages
rm -rf "$unpacked"
mkdir -p "$unpacked"
patches=()
for crate in toolgate-llm toolgate-proto toolgate-client; do
    # With times of now: packaged files have no times that would tell cargo what changed.
    tar -xzmf "$packages/$crate-0.1.0.crate" -C "$unpacked"
    patches+=(--config "patch.crates-io.$crate.path=\"$unpacked/$crate-0.1.0\"")
done
cd "$here"
cargo build --release --locked --quiet "${patches[@]}" >&2
echo "$here/target/release/toolgate-conformance-driver"
