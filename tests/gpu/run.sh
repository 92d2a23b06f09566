#!/usr/bin/env bash
# The encoder on this machine's GPU: parity tests, then one table of how long it takes to load, how
# fast it is by batch size and text length, and how fast sentence-transformers is on the same card,
# plain and through torch.compile. Without pip, or with NO_PYTORCH=1, the table has our columns alone.
#
# Needs a GPU of compute capability 8.0 or later with driver 525 or later. cuBLAS is taken from NVIDIA's wheels unless
# the system has it: version 12, which every such driver can serve.
set -euo pipefail

cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}
package=(--release --locked --package toolgate-encoder)
work=.cache/gpu
mkdir -p "$work"

command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

if ! ldconfig -p | grep -Eq 'libcublas\.so\.1[23]'; then
    if [[ ! -d $work/libraries/nvidia ]]; then
        "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$work/libraries" \
            --no-deps --only-binary=:all: 'nvidia-cublas-cu12>=12.8,<13'
    fi
    export LD_LIBRARY_PATH=$PWD/$work/libraries/nvidia/cublas/lib:${LD_LIBRARY_PATH:-}
fi

"$cargo" run "${package[@]}" --example gpu_parity
"$cargo" build "${package[@]}" --example gpu_speed
speed=${CARGO_TARGET_DIR:-target}/release/examples/gpu_speed
# An empty cache, so that the first load shows what compiling the kernels takes.
CUDA_CACHE_PATH=$(mktemp -d)
export CUDA_CACHE_PATH
trap 'rm -rf "$CUDA_CACHE_PATH"' EXIT
"$speed" cuda:0 | tee "$work/lines"

if [[ -z ${NO_PYTORCH:-} ]]; then
    model=${TOOLGATE_MODEL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolgate/models/all-MiniLM-L6-v2}
    python=$work/venv/bin/python
    if [[ ! -x $python ]]; then
        "${PYTHON:-python3}" -m venv "$work/venv"
        "$python" -m pip install --quiet --disable-pip-version-check torch sentence-transformers ||
            rm -r "$work/venv"
    fi
    if [[ -x $python ]]; then
        # PyTorch brings its own libraries.
        unset LD_LIBRARY_PATH
        "$python" tests/gpu/pytorch.py "$model" | tee -a "$work/lines"
        "$python" tests/gpu/pytorch.py "$model" --compile | tee -a "$work/lines"
    fi
fi

printf '\n'
"${PYTHON:-python3}" tests/gpu/table.py <"$work/lines"
