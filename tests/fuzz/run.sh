#!/bin/sh
# Fuzzes for SECONDS each the targets named, or all of them: tests/fuzz/run.sh SECONDS [TARGET...]
#
# Needs cargo, the toolchain of rust-toolchain.toml and a C++ compiler (for libFuzzer), and nothing else:
# the flags below are what cargo-fuzz passes, less its sanitizer, which only nightly has. New inputs are kept
# in $FUZZ_OUT (target/fuzz) and never in the committed corpus; what crashed is kept beside them.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: $0 SECONDS [TARGET...]" >&2
    exit 2
fi
seconds=$1
shift
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
[ $# -gt 0 ] || set -- handle registration config policy query credentials scan stream request enclosed

out=${FUZZ_OUT:-$root/target/fuzz}
host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"

# With --target, build scripts and macros are left alone. Every crate is instrumented: slow to build, best at finding.
export CARGO_TARGET_DIR="${FUZZ_TARGET_DIR:-$out/build}"
RUSTFLAGS=$flags cargo build --quiet --locked --package toolgate-fuzz --target "$host"
binaries=$CARGO_TARGET_DIR/$host/debug

for target; do
    found=$out/corpus/$target
    mkdir -p "$found" "$out/crashes/$target"
    echo "== $target, $seconds s"
    log=$out/$target.log
    # The first folder takes what is new; the committed corpus is read. 10 s for one input is a hang.
    "$binaries/fuzz_$target" "$found" "corpus/$target" -dict="dictionaries/$target.dict" \
        -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$out/crashes/$target/" -print_final_stats=1 >"$log" 2>&1 || {
        grep -a -A 30 panicked "$log" >&2 || tail -n 40 "$log" >&2
        echo "$target failed; its input is in $out/crashes/$target" >&2
        exit 1
    }
    grep -E '^(#[0-9]+.DONE|stat::number_of_executed_units|stat::peak_rss_mb)' "$log"
done
