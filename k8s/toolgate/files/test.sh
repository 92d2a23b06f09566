#!/bin/sh
# What `helm test` runs: register, route, gate, against the release's Service, with the image's own command.
set -eu

echo "registering two tools with $TOOLGATE_ENDPOINT"
toolgate register /test/helm-test.json --all-or-nothing

echo "routing"
routed=$(toolgate route --json "what time is it in Tokyo?")
handle=$(printf '%s' "$routed" | tr -d '\n' | sed -n 's/.*"active_set_handle" *: *"\([^"]*\)".*/\1/p')
case $routed in
    *mcp__helm-test__current_time*) ;;
    *) echo "current_time is not in the active set: $routed" >&2; exit 1 ;;
esac

echo "gating a call that is right"
toolgate gate --handle "$handle" --call mcp__helm-test__current_time --arguments '{"zone": "Asia/Tokyo"}'

echo "gating a call whose arguments are wrong, which must be refused"
if toolgate gate --handle "$handle" --call mcp__helm-test__current_time --arguments '{"zone": 9}'; then
    echo "it was allowed" >&2
    exit 1
fi

toolgate unregister helm-test
echo "passed"
