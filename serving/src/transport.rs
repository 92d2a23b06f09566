//! What one connection may take of the process, and how peers that went away are noticed.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tonic::transport::Server;

/// Streams that one connection may have open: as many calls as a server takes at a time by default. A
/// client's further calls wait on its side.
const STREAMS_MAX: u32 = 256;

/// Bytes of one call's headers over HTTP/2; of HTTP/1.1, hyper takes up to 400 KiB.
const HEADERS_MAX: u32 = 16 << 10;

/// Streams that a peer may reset before they were looked at; beyond it, the transport ends the connection with all honest
/// calls on it. Rapid resets (CVE-2023-44487) are kept within bounds by the budget of `connections/frames`, which takes no
/// more of them at a time than this, and slows down who sends more. A few would not do: while the process is busy, calls
/// and their resets come to lie beside each other in the socket whenever callers run out of time.
const RESETS_MAX: usize = 4_096;

/// A silent peer is asked for a sign of life after this, and dropped after as long again.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A server to which services are added, with every limit that tonic leaves open set.
#[must_use]
pub fn transport() -> Server {
    Server::builder()
        // One connection must not take what others need.
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_MAX)
        .http2_max_pending_accept_reset_streams(Some(RESETS_MAX))
        // Peers that are gone without a word are noticed.
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
}

/// Connections of `server` are asked to end after about `age`, and cut off when they still have not after `grace` more.
/// Processes differ by a tenth either way, so that replicas which start together don't end connections together.
#[must_use]
pub fn ending_after(server: Server, age: Duration, grace: Duration) -> Server {
    // Of the standard library's own random keys: chance enough to keep replicas apart.
    let spread = RandomState::new().hash_one(0_u8) % 201;
    let share = u32::try_from(900 + spread).unwrap_or(1_000);
    server.max_connection_age(age / 1_000 * share).max_connection_age_grace(grace)
}
