#!/usr/bin/env bash
# Runs the CUDA kernels on the CPU, thread by thread, against plain loops. Needs a C++ compiler alone.
set -euo pipefail

cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra -Werror -Wno-unknown-pragmas -o "$folder/test" test.cpp
"$folder/test"
