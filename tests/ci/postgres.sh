#!/bin/bash
# Makes sure that the tests of the shared store have a PostgreSQL (14 or newer) and a PgBouncer to start.
# Looks first; what is missing is installed where apt-get may, or named.
set -euo pipefail

find_postgres() {
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -1)
    if [ -x "$found" ]; then
        echo "$found"
    else
        command -v postgres || true
    fi
}

find_pooler() {
    PATH="$PATH:/usr/sbin" command -v pgbouncer || true
}

is_complete() {
    [ -n "$(find_postgres)" ] && [ -n "$(find_pooler)" ]
}

if ! is_complete && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    # No cluster of Debian's own, and no service: the tests start theirs.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    export DEBIAN_FRONTEND=noninteractive
    apt-get install --yes --no-install-recommends postgresql pgbouncer >/dev/null ||
        { apt-get update >/dev/null && apt-get install --yes --no-install-recommends postgresql pgbouncer >/dev/null; }
fi

if ! is_complete; then
    echo "The tests of the shared store need PostgreSQL 14 or newer and PgBouncer." >&2
    echo "Debian and Ubuntu: sudo apt-get install postgresql pgbouncer" >&2
    echo "Fedora: sudo dnf install postgresql-server pgbouncer; macOS: brew install postgresql pgbouncer" >&2
    exit 1
fi

version=$("$(find_postgres)" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
if [ "$version" -lt 14 ]; then
    echo "PostgreSQL $version is too old: at least 14 is needed." >&2
    exit 1
fi
echo "PostgreSQL $version, $("$(find_pooler)" --version | head -1)"
