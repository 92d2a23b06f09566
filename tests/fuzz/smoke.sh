#!/bin/sh
# Every fuzz target over its corpus and for some seconds more, for `make test`: tests/fuzz/smoke.sh [SECONDS]
set -eu
FUZZ_INSTRUMENT=ours exec "$(dirname "$0")/run.sh" "${1:-3}"
