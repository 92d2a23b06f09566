//! Limits on the resources of one connection, and detection of peers that went away.

use std::time::Duration;

use tonic::transport::Server;

/// Most open streams of one connection: as many calls as a server takes at a time by default. Further calls wait on the
/// client's side.
const STREAMS_MAX: u32 = 256;

/// Most bytes of one call's headers over HTTP/2. Over HTTP/1.1, hyper accepts up to 400 KiB.
const HEADERS_MAX: u32 = 16 << 10;

/// Most streams that a peer may reset before the server has looked at them. Beyond it, the transport ends the
/// connection with all honest calls on it. Rapid resets (CVE-2023-44487) are bounded by the budget of
/// `connections/frames`, which takes no more of them at a time than this and slows down a peer that sends more. A small
/// number would not do: while the process is busy, calls and their resets lie beside each other in the socket whenever
/// callers run out of time.
const RESETS_MAX: usize = 4_096;

/// Silence after which a peer is pinged. It is dropped after the same time again.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Returns a server builder with every limit set that tonic leaves open.
#[must_use]
pub fn transport() -> Server {
    Server::builder()
        // One connection must not starve others.
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_MAX)
        .http2_max_pending_accept_reset_streams(Some(RESETS_MAX))
        // Detects peers that disappeared without closing.
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
}

/// Asks connections of `server` to end after about `age`, and cuts off those that remain after `grace` more. Each
/// process varies the age by up to a tenth, so that replicas which start together don't end their connections together.
#[must_use]
pub fn ending_after(server: Server, age: Duration, grace: Duration) -> Server {
    let age = age.mul_f64(0.9 + 0.2 * fastrand::f64());
    server.max_connection_age(age).max_connection_age_grace(grace)
}
