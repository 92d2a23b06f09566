#!/usr/bin/env bash
# Clippy, warnings as errors, on the encoder with its feature `cuda`, tests and examples included. Needs
# neither nvcc nor a GPU.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

export NVCC=$here/nvcc-stand-in CUDA_COMPUTE_CAP=80 CUDARC_CUDA_VERSION=13000
# build.sh says why.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg feature=\"dynamic-loading\""
exec "${CARGO:-cargo}" clippy --locked --package toolgate-encoder --features cuda --all-targets \
    --target "$(rustc -vV | sed -n 's/^host: //p')" --target-dir target/cuda-check \
    --config 'profile.dev.package."*".opt-level=0' -- -D warnings
