#!/usr/bin/env bash
# Compiles the kernels to PTX: encoder-worker/kernels/bert.ptx, which is committed, so that whoever
# builds the encoder needs no compiler for it. Its first line has a digest of the source, its second one of all
# that follows.
#
#   ptx.sh            compiles
#   ptx.sh --check    says whether the PTX is what the source gives, by compiling it
#   ptx.sh --digest   says so by the digests; needs no compiler
set -euo pipefail

cd "$(dirname "$0")/../.."
kernels=encoder-worker/kernels
mode=${1:-}

refuse() {
    echo "$kernels/bert.ptx is not what $kernels/bert.cu gives${1:+ ($1)}: make cuda-ptx" >&2
    exit 1
}

sha256() {
    "${PYTHON:-python3}" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

# The lines before the PTX itself, which is on standard input.
head_of() {
    printf '// SHA-256 of the sources: %s\n' "$(cat "$kernels"/bert.cu "$kernels"/*.cuh | sha256)"
    printf '// SHA-256 of what follows: %s\n' "$(sha256)"
}

if [[ $mode == --digest ]]; then
    head=$(tail -n +3 "$kernels/bert.ptx" | head_of)
    [[ $(sed -n 1p "$kernels/bert.ptx") == "$(sed -n 1p <<<"$head")" ]] || refuse "the source was changed"
    [[ $(sed -n 2p "$kernels/bert.ptx") == "$(sed -n 2p <<<"$head")" ]] || refuse "the PTX was edited"
    exit 0
fi

encoder-worker/cuda/cuda_home.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
toolkit=.cache/cuda/nvidia/cu13/bin
"$toolkit/nvcc" -ptx -arch=compute_80 -std=c++17 -O3 "$kernels/bert.cu" -o "$folder/compiled"
# The compiler names its own version of PTX, which a driver older than it refuses. 7.0 is the first that has every
# instruction of the kernels; the assembler refuses those that a version does not have.
sed 's/^\.version .*/.version 7.0/' "$folder/compiled" >"$folder/body"
"$toolkit/ptxas" -arch=sm_80 "$folder/body" -o "$folder/assembled"
{ head_of <"$folder/body" && cat "$folder/body"; } >"$folder/bert.ptx"

if [[ $mode != --check ]]; then
    cp "$folder/bert.ptx" "$kernels/bert.ptx"
elif ! cmp --silent "$folder/bert.ptx" "$kernels/bert.ptx"; then
    refuse
fi
