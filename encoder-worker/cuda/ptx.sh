#!/usr/bin/env bash
# Compiles the kernels to PTX: encoder-worker/kernels/bert.ptx, which is committed, so that whoever
# builds the encoder needs no compiler for it. With --check, only says whether it is what the source
# gives.
set -euo pipefail

cd "$(dirname "$0")/../.."
encoder-worker/cuda/cuda_home.sh
kernels=encoder-worker/kernels
made=$(mktemp)
trap 'rm -f "$made"' EXIT
.cache/cuda/nvidia/cu13/bin/nvcc -ptx -arch=compute_80 -std=c++17 -O3 "$kernels/bert.cu" -o "$made"

if [[ ${1:-} != --check ]]; then
    cp "$made" "$kernels/bert.ptx"
elif ! cmp --silent "$made" "$kernels/bert.ptx"; then
    echo "$kernels/bert.ptx is not what $kernels/bert.cu gives: make cuda-ptx" >&2
    exit 1
fi
