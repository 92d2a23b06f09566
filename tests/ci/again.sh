#!/usr/bin/env bash
# Runs a command until it passes, four times at most: again.sh COMMAND... It is for what go downloads: cargo, npm, pip and
# Maven try again by themselves, and go does not.
set -uo pipefail

for pause in 2 5 10; do
    "$@" && exit
    echo "again in $pause s: $*" >&2
    sleep "$pause"
done
exec "$@"
