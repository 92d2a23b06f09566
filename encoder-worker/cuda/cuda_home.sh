#!/usr/bin/env bash
# Makes what is needed to compile for NVIDIA GPUs, from the wheels that NVIDIA publishes for pip: the
# compiler in .cache/cuda, and .cache/cuda/link, a folder that stands for the libraries while linking.
# Needs no GPU, no root and no CUDA toolkit; 100 MiB come down, once.
#
# The wheels stay at 13.0: PTX of a later compiler is too new for a driver of the 580 series.
set -euo pipefail

cd "$(dirname "$0")/../.."
home=.cache/cuda
done_file=$home/.made-from-13.0.88
[[ -e $done_file ]] && exit 0

rm -rf "$home"
mkdir -p "$home/wheels" "$home/link/lib64"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version 3.12 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux_2_12_x86_64 --platform manylinux2010_x86_64 --dest "$home/wheels" \
    nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
for wheel in "$home"/wheels/*.whl; do
    "${PYTHON:-python3}" -m zipfile -e "$wheel" "$home"
done
rm -r "$home/wheels"
toolkit=$home/nvidia/cu13
chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/*

# Candle's kernels ask for the CUDA runtime by this name and get the static one.
cp "$toolkit/lib/libcudart_static.a" "$home/link/lib64/libcudart.a"
# cudarc names these while linking; nothing is taken from them, since they are loaded at run time.
for library in cuda nvrtc curand cublas cublasLt cudnn; do
    ar rcs "$home/link/lib64/lib$library.a"
done
touch "$done_file"
