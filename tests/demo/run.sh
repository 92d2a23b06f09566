#!/usr/bin/env bash
# The demo behind `make run`: builds toolgate, fetches its encoder, starts it on an embedded store, registers
# the catalogs in tests/data/servers, routes intents as people write them, asks about two calls, and keeps
# serving until Ctrl-C. With --once it stops at the end. Uses nothing but the toolgate command, and the tenant
# that clients use when they are told none.
#
#   TOOLGATE_BIN                  a toolgate that is built already, instead of building one
#   TOOLGATE_SERVER_LISTEN        gRPC address (default 127.0.0.1:7070; a free port with --once)
#   TOOLGATE_SERVER_ADMIN_LISTEN  address of /metrics (default 127.0.0.1:7071; a free port with --once)
#   TOOLGATE_STORE_PATH           data directory (default .cache/demo/data, made anew)
#   TOOLGATE_MODEL_DIR            the encoder's folder (default: the user's cache)
set -euo pipefail

cd "$(dirname "$0")/../.."

work=.cache/demo
log=$work/server.log
server=
once=no
shown=no

main() {
    if [[ ${1-} == --once ]]; then once=yes; fi
    mkdir -p "$work"
    choose_addresses
    find_binary
    say "Fetching the encoder (once; it is kept in your cache)"
    "$toolgate" model fetch
    start_server
    say "Registering 21 real MCP servers' tools/list"
    "$toolgate" register tests/data/servers
    route_intents
    gate_calls
    print_savings
    if [[ $once == yes ]]; then return; fi
    shown=yes
    print_directions
    # A stop of the server itself ends the demo too, with the server's status.
    wait "$server"
}

say() {
    printf '\n%s== %s%s\n' "$bold" "$1" "$plain"
}

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

if [[ -t 1 && -z ${NO_COLOR-} ]]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
else
    bold='' plain=''
fi

# Building and starting

find_binary() {
    toolgate=${TOOLGATE_BIN-}
    # Not a setting of the server, which would wonder about it.
    unset TOOLGATE_BIN
    if [[ -n $toolgate ]]; then
        [[ -x $toolgate ]] || fail "TOOLGATE_BIN: $toolgate is not an executable file"
        return
    fi
    say "Building toolgate (minutes the first time)"
    toolgate=$(tests/demo/build.sh)
}

choose_addresses() {
    local grpc=127.0.0.1:7070 admin=127.0.0.1:7071
    if [[ $once == yes ]]; then
        grpc=127.0.0.1:$(free_port 17070)
        admin=127.0.0.1:$(free_port $((${grpc##*:} + 1)))
    fi
    export TOOLGATE_SERVER_LISTEN=${TOOLGATE_SERVER_LISTEN:-$grpc}
    export TOOLGATE_SERVER_ADMIN_LISTEN=${TOOLGATE_SERVER_ADMIN_LISTEN:-$admin}
    export TOOLGATE_ENDPOINT=http://$TOOLGATE_SERVER_LISTEN
    if [[ -z ${TOOLGATE_STORE_PATH-} ]]; then
        export TOOLGATE_STORE_PATH=$PWD/$work/data
        rm -rf "$TOOLGATE_STORE_PATH"
    fi
    refuse_taken "$TOOLGATE_SERVER_LISTEN" TOOLGATE_SERVER_LISTEN
    refuse_taken "$TOOLGATE_SERVER_ADMIN_LISTEN" TOOLGATE_SERVER_ADMIN_LISTEN
}

# Whether something listens at host:port.
is_taken() {
    (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null
}

free_port() {
    local port=$1
    while is_taken "127.0.0.1:$port"; do port=$((port + 1)); done
    printf '%s' "$port"
}

refuse_taken() {
    if is_taken "$1"; then
        fail "$1 is taken: another program (perhaps another demo) listens there." \
            "Stop it, or choose another address: $2=127.0.0.1:PORT make run"
    fi
}

start_server() {
    say "Starting toolgate on $TOOLGATE_SERVER_LISTEN (log: $log)"
    # In a process group of its own: Ctrl-C must reach it once, from here, since a second signal would
    # cut its drain short.
    set -m
    "$toolgate" serve >"$log" 2>&1 &
    server=$!
    set +m
    trap stop_server EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    local waited
    for ((waited = 0; waited < 600; waited++)); do
        if is_ready; then return; fi
        kill -0 "$server" 2>/dev/null || {
            tail -n 20 "$log" >&2
            fail "toolgate serve ended; its log is above"
        }
        sleep 0.1
    done
    tail -n 20 "$log" >&2
    fail "toolgate serve was not ready within a minute; its log is above"
}

is_ready() {
    local status
    { exec 3<>"/dev/tcp/${TOOLGATE_SERVER_ADMIN_LISTEN%:*}/${TOOLGATE_SERVER_ADMIN_LISTEN##*:}"; } 2>/dev/null ||
        return 1
    printf 'GET /readyz HTTP/1.1\r\nHost: toolgate\r\nConnection: close\r\n\r\n' >&3
    read -r -t 5 _ status _ <&3 || status=
    exec 3>&-
    [[ $status == 200 ]]
}

stop_server() {
    local status=$?
    trap - EXIT INT TERM
    if [[ -n $server ]] && kill -0 "$server" 2>/dev/null; then
        printf '\nStopping toolgate\n'
        kill -TERM "$server"
        wait "$server" || fail "toolgate serve ended with an error; see $log"
    fi
    # Ctrl-C is how this demo is meant to end, once it has shown everything.
    if [[ $status -eq 130 && $shown == yes ]]; then status=0; fi
    exit "$status"
}

# Asking

turns=0
full=0
spent=0

# route INTENT [OPTION...]: shows the answer, and adds its tokens to the sums.
route() {
    printf '\n%s"%s"%s\n' "$bold" "$1" "$plain"
    "$toolgate" route "$@"
    local answer
    answer=$("$toolgate" route "$@" --json)
    handle=$(text_of active_set_handle "$answer")
    turns=$((turns + 1))
    full=$((full + $(number_of full_catalog_tokens "$answer")))
    spent=$((spent + $(number_of phase1_tokens "$answer") + $(number_of phase2_tokens "$answer")))
}

number_of() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([0-9][0-9]*\).*/\1/p" <<<"$2" | head -n 1
}

text_of() {
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" <<<"$2" | head -n 1
}

route_intents() {
    say "What the model would be shown for what people ask"
    cat <<END
OVERLAP is how near a tool's summary is to the words in meaning, WORDS how many of them it shares. SCORE is made of
both, and the set holds what has at least half of the best score, unless its own overlap and words are too little.
END
    route "which merge requests are still waiting for me to review them?"
    route "checkout pods keep restarting since noon, what did they print before they died"
    route "how do I get from the Berlin office to the airport by car right now"
    route "dig out the page where we wrote down the onboarding steps"
    route "how many orders came in yesterday? they are in the shop's mongo database"
    route "open the staging login page and show me what it looks like on a phone"
    route "what time is it for our people in Tokyo when we meet at 4pm in Lisbon"
    say "A tool with a precondition: posting to Slack needs is_authenticated(\"chat:write\")"
    "$toolgate" register tests/data/servers/slack.json --settings tests/demo/slack.toml
    route "post in the design channel on slack that I'm ten minutes late"
    say "The same once the agent is signed in"
    route "post in the design channel on slack that I'm ten minutes late" --state tests/demo/signed-in.json
}

gate_calls() {
    say "May the model's calls run?"
    gate mcp__slack__slack_post_message '{"channel_id": "C042", "text": "ten minutes late, sorry"}'
    gate mcp__gitlab__delete_issue '{}'
}

# gate TOOL ARGUMENTS: a refused call (exit code 3) is an answer, not a failure of the demo.
gate() {
    local status=0
    printf '\n'
    "$toolgate" gate --handle "$handle" --state tests/demo/signed-in.json \
        --call "$1" --arguments "$2" || status=$?
    [[ $status -eq 0 || $status -eq 3 ]] || exit "$status"
}

print_savings() {
    say "Savings"
    local permille=$(((full - spent) * 1000 / full))
    printf '%d turns: %d tokens of tool definitions instead of %d (%d.%d%% less)\n' \
        "$turns" "$spent" "$full" "$((permille / 10))" "$((permille % 10))"
}

print_directions() {
    say "Toolgate stays up; Ctrl-C stops it"
    cat <<END
gRPC     $TOOLGATE_SERVER_LISTEN (reflection is on)
metrics  http://$TOOLGATE_SERVER_ADMIN_LISTEN/metrics

Ask it something, from another terminal (\`make install\` puts toolgate into your PATH):
  $(command_line) route "open an issue about the login page"

Or from Python (pip install ./client-sdk/python):
  from toolgate import Client
  with Client("$TOOLGATE_SERVER_LISTEN") as client:
      print([tool.model_name for tool in client.route("open an issue about the login page")])
END
}

# How another terminal calls toolgate.
command_line() {
    if [[ $TOOLGATE_SERVER_LISTEN != 127.0.0.1:7070 ]]; then printf 'TOOLGATE_ENDPOINT=%s ' "$TOOLGATE_ENDPOINT"; fi
    if command -v toolgate >/dev/null; then printf 'toolgate'; else printf '%s' "$toolgate"; fi
}

main "$@"
