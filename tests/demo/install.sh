#!/usr/bin/env bash
# What `make install` does: builds toolgate as `make run` does, and puts the binary where `cargo install` puts
# binaries (who has cargo on the path has that folder there too), or into PREFIX/bin.
set -euo pipefail

cd "$(dirname "$0")/../.."

prefix=${PREFIX:-${CARGO_INSTALL_ROOT:-${CARGO_HOME:-$HOME/.cargo}}}
folder=${prefix/#\~/$HOME}/bin

echo "Building toolgate (minutes the first time)"
built=$(tests/demo/build.sh)
mkdir -p "$folder"
install -m 755 "$built" "$folder/toolgate"
echo "$folder/toolgate is installed: $("$folder/toolgate" --version)"

found=$(command -v toolgate || true)
if [[ -z $found ]]; then
    echo "$folder is not in your PATH. To have it there in this shell, and in new ones with it in your profile:"
    echo "  export PATH=\"$folder:\$PATH\""
elif ! [[ $found -ef $folder/toolgate ]]; then
    echo "Another toolgate comes first in your PATH: $found"
fi
