#!/usr/bin/env bash
# Builds toolgate for this machine, optimised but without link-time optimisation (the profile `local`), and prints
# the path of the binary. On a terminal one line says how far the build is; elsewhere a line comes every half
# minute. What cargo says is shown when it fails, and is kept in .cache/build.log.
set -euo pipefail

cd "$(dirname "$0")/../.."
log=.cache/build.log

main() {
    if ! command -v cargo >/dev/null; then
        echo "cargo is missing: install Rust from https://rustup.rs, open a new shell, and try again" >&2
        exit 1
    fi
    mkdir -p .cache
    # cargo's own bar is what the line is made of. It begins at once and ends with a line feed, as nobody sees it.
    if ! CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=200 CARGO_TERM_COLOR=never \
        cargo build --profile local --locked --package toolgate-server --bin toolgate 2>&1 |
        tee "$log" | show_progress; then
        without_bars >&2
        echo "The build failed. What cargo said is above, and in $log." >&2
        exit 1
    fi
    printf 'built in %s\n' "$(elapsed)" >&2
    printf '%s\n' "${CARGO_TARGET_DIR:-target}/local/toolgate"
}

# Reads cargo's output, and says on standard error how far it is.
show_progress() {
    local piece='' doing='looking for what is to be built' told=0 is_terminal=no status
    if [[ -t 2 ]]; then is_terminal=yes; fi
    while true; do
        status=0
        IFS= read -r -d $'\r' -t 1 piece || status=$?
        # Above 128: nothing new within a second. Else the output has ended.
        if [[ $status -ne 0 && $status -le 128 ]]; then break; fi
        if [[ $piece =~ Building\ \[[^]]*\]\ ([0-9]+)/([0-9]+)(:\ ([^,$'\n']+))? ]]; then
            doing="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
            if [[ -n ${BASH_REMATCH[4]} ]]; then doing+=": ${BASH_REMATCH[4]%% *}"; fi
        elif [[ $piece == *Downloading* ]]; then
            doing="downloading crates"
        fi
        if [[ $is_terminal == yes ]]; then
            printf '\r\033[K%s  %s' "$(elapsed)" "$doing" >&2
        elif ((SECONDS - told >= 30)); then
            told=$SECONDS
            printf '%s  %s\n' "$(elapsed)" "$doing" >&2
        fi
    done
    if [[ $is_terminal == yes ]]; then printf '\r\033[K' >&2; fi
}

elapsed() {
    printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60))
}

# What cargo said besides how far it was.
without_bars() {
    tr '\r' '\n' <"$log" | grep -vE '^ *(Building \[|Compiling |Downloaded |$)' || true
}

main
