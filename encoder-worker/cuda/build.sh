#!/usr/bin/env bash
# build.sh CARGO-COMMAND [ARGUMENTS]: cargo, with everything set to compile the feature `cuda` for real,
# such as `build.sh build --release --package toolgate-server --features cuda`. The result is in
# target/cuda.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
"$here/cuda_home.sh"

export REAL_NVCC=$PWD/.cache/cuda/nvidia/cu13/bin/nvcc NVCC=$here/nvcc-lite
# Where the linker looks; not the toolkit, whose stubs must stay off every path.
export CUDA_HOME=$PWD/.cache/cuda/link
export CUDARC_CUDA_VERSION=13000
# PTX of 8.0 is compiled by the driver for every later GPU. 9.0 would mean 9.0 alone, 7.5 has no bf16.
export CUDA_COMPUTE_CAP=80
# Candle has cudarc link to NVIDIA's libraries; with this on as well, it loads them at run time instead.
# Its build script refuses the two together, but does not see a flag of the target: hence --target.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg feature=\"dynamic-loading\""
command=$1
shift
exec "${CARGO:-cargo}" "$command" --locked --target "$(rustc -vV | sed -n 's/^host: //p')" \
    --target-dir target/cuda "$@"
