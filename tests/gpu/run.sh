#!/usr/bin/env bash
# The encoder on this machine's GPU: parity tests, then one table of how long it takes to load, how
# fast it is by batch size and text length, and how fast sentence-transformers is on the same card,
# plain and through torch.compile. Without pip, or with NO_PYTORCH=1, the table has our columns alone.
#
# Needs a GPU of compute capability 8.0 or later with driver 580 or later. libcublas 13 and libcurand are
# taken from NVIDIA's wheels unless the system has them.
set -euo pipefail

cd "$(dirname "$0")/../.."
build=encoder-worker/cuda/build.sh
package=(--release --package toolgate-encoder --features cuda)
work=.cache/gpu
mkdir -p "$work"

command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

if ! ldconfig -p | grep -q 'libcublas\.so\.13'; then
    if [[ ! -d $work/libraries/nvidia ]]; then
        "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$work/libraries" \
            --only-binary=:all: 'nvidia-cublas==13.0.*' 'nvidia-curand==10.4.0.*'
    fi
    export LD_LIBRARY_PATH=$PWD/$work/libraries/nvidia/cu13/lib:${LD_LIBRARY_PATH:-}
fi

"$build" test "${package[@]}" --test gpu -- --nocapture --test-threads 1

"$build" build "${package[@]}" --example gpu_speed
speed=$(find target/cuda -path '*/release/examples/gpu_speed' -print -quit)
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
