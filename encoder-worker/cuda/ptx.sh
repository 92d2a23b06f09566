#!/usr/bin/env bash
# Compiles the kernels to PTX: encoder-worker/kernels/bert.ptx, which is committed, so that whoever
# builds the encoder needs no compiler for it. Its first line has a digest of the source.
#
#   ptx.sh            compiles
#   ptx.sh --check    says whether the PTX is what the source gives, by compiling it
#   ptx.sh --digest   says so by the digest; needs no compiler
set -euo pipefail

cd "$(dirname "$0")/../.."
kernels=encoder-worker/kernels
mode=${1:-}

refuse() {
    echo "$kernels/bert.ptx is not what $kernels/bert.cu gives: make cuda-ptx" >&2
    exit 1
}

first_line() {
    printf '// SHA-256 of the sources: %s\n' \
        "$(cat "$kernels"/bert.cu "$kernels"/*.cuh | "${PYTHON:-python3}" -c '
import hashlib, sys
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')"
}

if [[ $mode == --digest ]]; then
    [[ $(head -n 1 "$kernels/bert.ptx") == "$(first_line)" ]] || refuse
    exit 0
fi

encoder-worker/cuda/cuda_home.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.cache/cuda/nvidia/cu13/bin/nvcc -ptx -arch=compute_80 -std=c++17 -O3 "$kernels/bert.cu" -o "$folder/body"
{ first_line && cat "$folder/body"; } >"$folder/bert.ptx"

if [[ $mode != --check ]]; then
    cp "$folder/bert.ptx" "$kernels/bert.ptx"
elif ! cmp --silent "$folder/bert.ptx" "$kernels/bert.ptx"; then
    refuse
fi
