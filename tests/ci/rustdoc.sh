#!/usr/bin/env bash
# Stands in for rustdoc while cargo runs documentation's tests (RUSTDOC): writes the documentation too, warnings as
# errors. So it is linted with the build that is tested, where `cargo doc` checks every dependency once more.
set -euo pipefail

if [[ " $* " == *' --test '* ]]; then
    arguments=()
    skip=no
    for argument in "$@"; do
        case $skip,$argument in
        yes,*) skip=no ;;
        no,--test) ;;
        no,--test-run-directory | no,--test-args) skip=yes ;;
        *) arguments+=("$argument") ;;
        esac
    done
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    rustdoc "${arguments[@]}" -D warnings --out-dir "$folder"
fi
rustdoc "$@"
