//! Keys of listeners, admission control and limits of requests.

use std::net::SocketAddr;
use std::time::Duration;

use super::{GIB, KIB, MIB};
use crate::key::Key;
use crate::origin::WebOrigin;
use crate::typed_kind::{ADDRESS, ORIGINS, count, size, span};

pub const SERVER_LISTEN: Key<SocketAddr> = Key::new(
    "server.listen",
    ADDRESS,
    "127.0.0.1:7070",
    "Where gRPC, gRPC-Web and JSON over HTTP are served. Without auth.methods, keep it on a \
     loopback or private address.",
);
pub const SERVER_ADMIN_LISTEN: Key<SocketAddr> = Key::new(
    "server.admin_listen",
    ADDRESS,
    "127.0.0.1:7071",
    "Where /metrics and /livez are served over HTTP.",
);
pub const SERVER_MAX_CONNECTIONS: Key<usize> = Key::new(
    "server.max_connections",
    count(1, 1_000_000),
    "1024",
    "Open gRPC connections. For one more, the oldest that never made an authenticated call is \
     closed; without such a one, an idle one of a tenant that has more than half of all; and \
     without that, the new one.",
);
pub const SERVER_MAX_CONNECTIONS_PER_ADDRESS: Key<usize> = Key::new(
    "server.max_connections_per_address",
    count(0, 1_000_000),
    "0",
    "Of these, connections of one address (one /64 of IPv6). 0: half of server.max_connections. \
     Loopback has no such bound; where a proxy or NAT stands for many callers, set it to \
     server.max_connections.",
);
pub const SERVER_MAX_CONNECTION_IDLE: Key<Duration> = Key::new(
    "server.max_connection_idle",
    span(0, 7 * 24 * 3_600_000),
    "5m",
    "A connection without any request for this long is closed; 30s for one that never made an \
     authenticated call. 0s: only such ones.",
);
pub const SERVER_MAX_CONCURRENT_CALLS: Key<usize> = Key::new(
    "server.max_concurrent_calls",
    count(1, 1_000_000),
    "256",
    "Calls in progress; one more is refused with RESOURCE_EXHAUSTED and a retry delay. A tenant \
     gets four times what is left free at most, so that there is always a place for others.",
)
.live();
pub const SERVER_MAX_WAIT: Key<Duration> = Key::new(
    "server.max_wait",
    span(0, 60_000),
    "100ms",
    "How long Route and other interactive calls may wait for their turn on average: while it is \
     longer, fewer are let in than server.max_concurrent_calls, and the rest is refused with \
     RESOURCE_EXHAUSTED and a retry delay. While most calls wait longer before anything is done \
     for them, a call is refused as it comes where its connection's first has waited for a \
     twentieth of it. 0s: never fewer.",
);
pub const SERVER_MAX_CONCURRENT_CALLS_PER_TENANT: Key<usize> = Key::new(
    "server.max_concurrent_calls_per_tenant",
    count(0, 1_000_000),
    "0",
    "Calls of one tenant in progress; one more is refused with RESOURCE_EXHAUSTED and a retry \
     delay. 0: no more than its share.",
)
.live();
pub const SERVER_MAX_MEMORY: Key<u64> = Key::new(
    "server.max_memory",
    size(0, 1 << 50),
    "0B",
    "Memory of the process: from nine tenths of it on calls are shed, down to a sixteenth of \
     server.max_concurrent_calls. 0B: what the container may use, if that is limited.",
);
pub const SERVER_MAX_CONNECTION_AGE: Key<Duration> = Key::new(
    "server.max_connection_age",
    span(0, 7 * 24 * 3_600_000),
    "30m",
    "After about this long a connection is asked to end, after its calls, so that clients spread \
     over new replicas. 0s: never.",
);
pub const SERVER_MAX_WATCHES: Key<usize> = Key::new(
    "server.max_watches",
    count(1, 1_000_000),
    "1024",
    "WatchCatalog streams that are open, of which a tenant gets four fifths of what others \
     leave; one more is refused with RESOURCE_EXHAUSTED and a retry delay.",
);
pub const SERVER_RESPONSE_BUFFER_LIMIT: Key<usize> = Key::new(
    "server.response_buffer_limit",
    size(MIB, 1 << 40),
    "256MiB",
    "Memory for answers that their callers have not read yet; one more is refused with \
     RESOURCE_EXHAUSTED and a retry delay. At least limits.max_message_size, and 16KiB for each \
     of server.max_watches.",
);
pub const SERVER_CORS_ORIGINS: Key<Vec<WebOrigin>> = Key::new(
    "server.cors_origins",
    ORIGINS,
    "",
    "Web pages that may call, by their origins; a browser's call from any other page is \
     refused.",
);
pub const SERVER_MAX_DEADLINE: Key<Duration> = Key::new(
    "server.max_deadline",
    span(10, 600_000),
    "30s",
    "The longest a call may take: a longer deadline, or none, is cut to this.",
);
pub const SERVER_DRAIN_TIMEOUT: Key<Duration> = Key::new(
    "server.drain_timeout",
    span(0, 600_000),
    "10s",
    "After a stop signal, how long calls in progress may still take before the process ends.",
);
pub const LIMITS_CALLS_PER_SECOND_PER_TENANT: Key<u32> = Key::new(
    "limits.calls_per_second_per_tenant",
    count(0, 1_000_000),
    "0",
    "Calls that one tenant may begin in a second on this replica, all of a second's at once; one \
     more is refused with RESOURCE_EXHAUSTED and the time to wait. 0: any number.",
)
.live();
pub const LIMITS_MAX_INTENTS: Key<usize> =
    Key::new("limits.max_intents", count(1, 1_000), "16", "Intents of one Route call.").live();
pub const LIMITS_MAX_INTENT_SIZE: Key<usize> =
    Key::new("limits.max_intent_size", size(1, MIB), "32KiB", "Text of one intent.").live();
pub const LIMITS_MAX_STATE_SIZE: Key<usize> = Key::new(
    "limits.max_state_size",
    size(KIB, 16 * MIB),
    "64KiB",
    "The agent state of one call, encoded, without its conversation.",
)
.live();
pub const LIMITS_MAX_MESSAGES_SIZE: Key<usize> = Key::new(
    "limits.max_messages_size",
    size(KIB, 16 * MIB),
    "1MiB",
    "The conversation in the agent state of one call.",
)
.live();
pub const LIMITS_MAX_TOOLS_PER_REGISTRATION: Key<usize> = Key::new(
    "limits.max_tools_per_registration",
    count(1, 100_000),
    "2048",
    "Tools of one RegisterServer call.",
)
.live();
pub const LIMITS_MAX_SCHEMA_SIZE: Key<usize> =
    Key::new("limits.max_schema_size", size(KIB, 16 * MIB), "256KiB", "One tool's definition.")
        .live();
pub const LIMITS_MAX_SCHEMA_NESTING: Key<usize> = Key::new(
    "limits.max_schema_nesting",
    count(4, 128),
    "64",
    "Nesting of one tool's definition, in JSON levels.",
)
.live();
pub const LIMITS_MAX_TOOLS_PER_TENANT: Key<usize> = Key::new(
    "limits.max_tools_per_tenant",
    count(1, 10_000_000),
    "100000",
    "Tools that a tenant may have.",
)
.live();
pub const LIMITS_MAX_SERVERS_PER_TENANT: Key<usize> = Key::new(
    "limits.max_servers_per_tenant",
    count(1, 100_000),
    "2000",
    "MCP servers that a tenant may have, announced ones among them.",
)
.live();
pub const LIMITS_MAX_MESSAGE_SIZE: Key<usize> = Key::new(
    "limits.max_message_size",
    size(64 * KIB, GIB),
    "4MiB",
    "One gRPC message, either way.",
);
