#!/usr/bin/env bash
# Every fuzz target over its corpus, and over RUNS inputs in all, for `make test`: tests/fuzz/smoke.sh [RUNS]
#
# The seed is fixed, and tests/ci/clippy.sh instruments the targets' own functions alone: libFuzzer goes by what it learns of a
# run, which hash maps make differ, so that a full instrumentation has other inputs each time. `make fuzz` finds new ones.
set -euo pipefail
runs=${1:-2000}
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
export RUSTC_WORKSPACE_WRAPPER=${RUSTC_WORKSPACE_WRAPPER:-$root/tests/ci/clippy.sh}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
out=$CARGO_TARGET_DIR/fuzz/smoke
targets=(handle registration config policy query credentials scan stream request enclosed)

# With a test, as the other checks, so that everything has the features that it was compiled with for them.
cargo build --quiet --locked --workspace --test fetch "${targets[@]/#/--bin=fuzz_}"
for target in "${targets[@]}"; do
    mkdir -p "$out/$target"
    log=$out/$target.log
    seeds=("corpus/$target"/*)
    # The list gives the files an order. 10 s for one input is a hang.
    "$CARGO_TARGET_DIR/debug/fuzz_$target" -seed_inputs="$(IFS=, && echo "${seeds[*]}")" -dict="dictionaries/$target.dict" -seed=1 -use_counters=0 -runs="$runs" \
        -max_len=16384 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$out/$target/" -print_final_stats=1 >"$log" 2>&1 || {
        grep -a -A 30 panicked "$log" >&2 || tail -n 40 "$log" >&2
        echo "$target failed; its input is in $out/$target" >&2
        exit 1
    }
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
done
