#!/usr/bin/env bash
# Runs make targets: run_steps.sh TARGET... Those between brackets run in lanes beside each other, cut by slashes, and
# one after another within a lane; what follows the closing bracket waits for all of them:
#
#     run_steps.sh a [ b c / d ] e
#
# Says how long each took, goes on after a failure so that one run shows everything, and ends with a table in the order
# of the targets, and with the last lines of each that failed. Fails when any of them did. What a step in a lane prints is
# shown when it ends.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit
logs=.cache/steps
rm -rf "$logs"
mkdir -p "$logs"

names=()
# Steps call make themselves; the outer make's job server must not be theirs.
unset MAKEFLAGS MFLAGS MAKELEVEL

# note NAME STATUS STARTED: the last line of a step, and its row of the table.
note() {
    local result=ok took=$((SECONDS - $3))
    [[ $2 -eq 0 ]] || result=FAILED
    printf '<== %s: %s, %d s\n' "$1" "$result" "$took"
    printf '%-20s %8d  %s\n' "$1" "$took" "$result" >"$logs/$1.row"
}

run_alone() {
    local started=$SECONDS
    printf '\n==> %s\n' "$1"
    make "$1" 2>&1 | tee "$logs/$1.log"
    note "$1" "${PIPESTATUS[0]}" "$started"
}

run_lane() {
    local name started status
    for name in "$@"; do
        started=$SECONDS status=0
        printf '\n--> %s\n' "$name"
        make "$name" >"$logs/$name.log" 2>&1 || status=$?
        # One step's lines are not mixed with another's.
        {
            flock 9
            printf '\n==> %s\n' "$name"
            cat "$logs/$name.log"
            note "$name" "$status" "$started"
        } 9>"$logs/print.lock"
    done
}

lane=()
in_lanes=no
for word in "$@"; do
    case $word in
    '[') in_lanes=yes ;;
    / | ']')
        ((${#lane[@]} == 0)) || run_lane "${lane[@]}" &
        lane=()
        if [[ $word == ']' ]]; then
            wait
            in_lanes=no
        fi
        ;;
    *)
        names+=("$word")
        if [[ $in_lanes == yes ]]; then lane+=("$word"); else run_alone "$word"; fi
        ;;
    esac
done

failures=0
{
    printf '%-20s %8s  %s\n' step seconds result
    for name in "${names[@]}"; do
        # A lane that died has steps without a row.
        row=$(cat "$logs/$name.row" 2>/dev/null) || row=$(printf '%-20s %8s  %s' "$name" - FAILED)
        printf '%s\n' "$row"
        [[ $row == *ok ]] || failures=$((failures + 1))
    done
    printf '%-20s %8d  %s\n' total "$SECONDS" "$([[ $failures -eq 0 ]] && echo ok || echo "$failures failed")"
} >"$logs/table"
for name in "${names[@]}"; do
    grep -q 'ok$' "$logs/$name.row" 2>/dev/null && continue
    printf '\n==> %s failed; its last lines:\n' "$name"
    tail -n 60 "$logs/$name.log"
done
printf '\n'
cat "$logs/table"

[[ $failures -eq 0 ]]
