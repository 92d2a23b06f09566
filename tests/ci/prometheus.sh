#!/usr/bin/env bash
# Prints the folder that holds prometheus and promtool. Where there are none, takes them out of Debian's package into
# .cache, without installing it: that would start a service.
set -euo pipefail

cd "$(dirname "$0")/../.."
folder=$PWD/.cache/toolchains/prometheus

has_both() {
    [[ -x $1/prometheus && -x $1/promtool ]]
}

if [[ -n ${PROMETHEUS_BIN:-} ]]; then
    has_both "$PROMETHEUS_BIN" || { echo "PROMETHEUS_BIN: no prometheus and promtool in $PROMETHEUS_BIN" >&2; exit 1; }
    echo "$PROMETHEUS_BIN"
elif found=$(command -v promtool) && has_both "$(dirname "$found")"; then
    dirname "$found"
else
    if ! has_both "$folder/usr/bin"; then
        if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
            echo "alerts are tested with Prometheus: install it, or name its folder with PROMETHEUS_BIN" >&2
            exit 1
        fi
        mkdir -p "$folder"
        # Lists may be missing, or too old for the package that is there now.
        (cd "$folder" && { apt-get download -qq prometheus >&2 || { apt-get update -qq && apt-get download -qq prometheus; } >&2; })
        for package in "$folder"/*.deb; do
            dpkg -x "$package" "$folder"
        done
        rm -f "$folder"/*.deb
    fi
    echo "$folder/usr/bin"
fi
