#!/usr/bin/env bash
# Puts NVIDIA's compiler of kernels into .cache/cuda, from the wheels that NVIDIA publishes for pip.
# Needs no GPU, no root and no CUDA toolkit; 100 MiB come down, once.
set -euo pipefail

cd "$(dirname "$0")/../.."
home=.cache/cuda
done_file=$home/.made-from-13.0.88
[[ -e $done_file ]] && exit 0

rm -rf "$home"
mkdir -p "$home/wheels"
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

touch "$done_file"
