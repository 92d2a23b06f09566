//! Keys of listeners, admission control and limits of requests.

use super::{GIB, KIB, MIB, count, key, size, span};
use crate::key::{Key, Kind};

/// Keys in the order of the example file.
pub(super) const KEYS: &[Key] = &[
    key(
        "server.listen",
        Kind::Address,
        "127.0.0.1:7070",
        "Where gRPC, gRPC-Web and JSON over HTTP are served. Without auth.methods, keep it on a loopback or private address.",
    ),
    key(
        "server.admin_listen",
        Kind::Address,
        "127.0.0.1:7071",
        "Where /metrics and /livez are served over HTTP.",
    ),
    key(
        "server.max_connections",
        count(1, 1_000_000),
        "1024",
        "Open gRPC connections. For one more, the oldest that never made an authenticated call is closed; without such a \
         one, an idle one of a tenant that has more than half of all; and without that, the new one.",
    ),
    key(
        "server.max_connections_per_address",
        count(0, 1_000_000),
        "0",
        "Of these, connections of one address (one /64 of IPv6). 0: half of server.max_connections. Loopback has no such \
         bound; where a proxy or NAT stands for many callers, set it to server.max_connections.",
    ),
    key(
        "server.max_connection_idle",
        span(0, 7 * 24 * 3_600_000),
        "5m",
        "A connection without any request for this long is closed; 30s for one that never made an authenticated call. \
         0s: only such ones.",
    ),
    key(
        "server.max_concurrent_calls",
        count(1, 1_000_000),
        "256",
        "Calls in progress; one more is refused with RESOURCE_EXHAUSTED and a retry delay. A tenant gets four times what \
         is left free at most, so that there is always a place for others.",
    ),
    key(
        "server.max_wait",
        span(0, 60_000),
        "100ms",
        "How long Route and other interactive calls may wait for their turn on average: while it is longer, fewer are let in \
         than server.max_concurrent_calls, and the rest is refused with RESOURCE_EXHAUSTED and a retry delay. While \
         most calls wait longer before anything is done for them, a call is refused as it comes where its connection's \
         first has waited for a twentieth of it. 0s: never fewer.",
    ),
    key(
        "server.max_concurrent_calls_per_tenant",
        count(0, 1_000_000),
        "0",
        "Calls of one tenant in progress; one more is refused with RESOURCE_EXHAUSTED and a retry delay. 0: no more \
         than its share.",
    ),
    key(
        "server.max_memory",
        size(0, 1 << 50),
        "0B",
        "Memory of the process: from nine tenths of it on calls are shed, down to a sixteenth of \
         server.max_concurrent_calls. 0B: what the container may use, if that is limited.",
    ),
    key(
        "server.max_connection_age",
        span(0, 7 * 24 * 3_600_000),
        "30m",
        "After about this long a connection is asked to end, after its calls, so that clients spread over new replicas. \
         0s: never.",
    ),
    key(
        "server.max_watches",
        count(1, 1_000_000),
        "1024",
        "WatchCatalog streams that are open, of which a tenant gets four fifths of what others leave; one more is refused \
         with RESOURCE_EXHAUSTED and a retry delay.",
    ),
    key(
        "server.response_buffer_limit",
        size(MIB, 1 << 40),
        "256MiB",
        "Memory for answers that their callers have not read yet; one more is refused with RESOURCE_EXHAUSTED \
         and a retry delay. At least limits.max_message_size, and 16KiB for each of server.max_watches.",
    ),
    key(
        "server.cors_origins",
        Kind::Origins,
        "",
        "Web pages that may call, by their origins; a browser's call from any other page is refused.",
    ),
    key(
        "server.max_deadline",
        span(10, 600_000),
        "30s",
        "The longest a call may take: a longer deadline, or none, is cut to this.",
    ),
    key(
        "server.drain_timeout",
        span(0, 600_000),
        "10s",
        "After a stop signal, how long calls in progress may still take before the process ends.",
    ),
    key(
        "limits.calls_per_second_per_tenant",
        count(0, 1_000_000),
        "0",
        "Calls that one tenant may begin in a second on this replica, all of a second's at once; one more is refused \
         with RESOURCE_EXHAUSTED and the time to wait. 0: any number.",
    ),
    key("limits.max_intents", count(1, 1_000), "16", "Intents of one Route call."),
    key("limits.max_intent_size", size(1, MIB), "32KiB", "Text of one intent."),
    key(
        "limits.max_state_size",
        size(KIB, 16 * MIB),
        "64KiB",
        "The agent state of one call, encoded, without its conversation.",
    ),
    key(
        "limits.max_messages_size",
        size(KIB, 16 * MIB),
        "1MiB",
        "The conversation in the agent state of one call.",
    ),
    key(
        "limits.max_tools_per_registration",
        count(1, 100_000),
        "2048",
        "Tools of one RegisterServer call.",
    ),
    key("limits.max_schema_size", size(KIB, 16 * MIB), "256KiB", "One tool's definition."),
    key(
        "limits.max_schema_nesting",
        count(4, 128),
        "64",
        "Nesting of one tool's definition, in JSON levels.",
    ),
    key(
        "limits.max_tools_per_tenant",
        count(1, 10_000_000),
        "100000",
        "Tools that a tenant may have.",
    ),
    key(
        "limits.max_servers_per_tenant",
        count(1, 100_000),
        "2000",
        "MCP servers that a tenant may have, announced ones among them.",
    ),
    key("limits.max_message_size", size(64 * KIB, GIB), "4MiB", "One gRPC message, either way."),
];
