#!/usr/bin/env bash
# Prints where a Chromium is; installs Debian's where there is none and this is root.
set -euo pipefail

find_one() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    return 1
}

if [[ -n ${CHROMIUM:-} ]]; then
    echo "$CHROMIUM"
elif ! find_one; then
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "the browser test needs Chromium: install it, or say where it is with CHROMIUM" >&2
        exit 1
    fi
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium >&2
    find_one
fi
