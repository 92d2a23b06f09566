#!/usr/bin/env bash
# Checks that `ptx.sh --digest` refuses PTX whose body was edited, and a source that was: on a copy.
set -euo pipefail

cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kernels=$folder/encoder-worker/kernels

# Copies what the digests are of.
copy() {
    rm -rf "$folder/encoder-worker"
    mkdir -p "$kernels" "$folder/encoder-worker/cuda"
    cp encoder-worker/cuda/ptx.sh "$folder/encoder-worker/cuda/"
    cp encoder-worker/kernels/bert.ptx encoder-worker/kernels/bert.cu encoder-worker/kernels/*.cuh "$kernels/"
}

# The exit status and the words of a check of the copy.
found() {
    local status=0
    "$folder/encoder-worker/cuda/ptx.sh" --digest 2>&1 || status=$?
    echo "exit $status"
}

fail() {
    echo "ptx.sh --digest, $1: $2" >&2
    exit 1
}

copy
[[ $(found) == "exit 0" ]] || fail "nothing edited" "$(found)"

copy
echo "// edited" >>"$kernels/bert.ptx"
[[ $(found) == *"the PTX was edited"*"exit 1" ]] || fail "an edited body" "$(found)"

copy
echo "// edited" >>"$kernels/bert.cu"
[[ $(found) == *"the source was changed"*"exit 1" ]] || fail "an edited source" "$(found)"
