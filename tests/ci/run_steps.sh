#!/usr/bin/env bash
# Runs make targets one after another: run_steps.sh TARGET... Says how long each took, goes on after a
# failure so that one run shows everything, and ends with a table. Fails when any of them did.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit
logs=.cache/steps
rm -rf "$logs"
mkdir -p "$logs"

names=()
seconds=()
results=()
failures=0
# Steps call make themselves; the outer make's job server must not be theirs.
unset MAKEFLAGS MFLAGS MAKELEVEL

for name in "$@"; do
    printf '\n==> %s\n' "$name"
    started=$SECONDS
    if make "$name" 2>&1 | tee "$logs/$name.log"; then
        result=ok
    else
        result=FAILED
        failures=$((failures + 1))
    fi
    took=$((SECONDS - started))
    printf '<== %s: %s, %d s\n' "$name" "$result" "$took"
    names+=("$name")
    seconds+=("$took")
    results+=("$result")
done

printf '\n%-20s %8s  %s\n' step seconds result
for index in "${!names[@]}"; do
    printf '%-20s %8d  %s\n' "${names[$index]}" "${seconds[$index]}" "${results[$index]}"
done
printf '%-20s %8d  %s\n' total "$SECONDS" "$([[ $failures -eq 0 ]] && echo ok || echo "$failures failed")"

[[ $failures -eq 0 ]]
