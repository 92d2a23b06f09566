//! Sessions of hosts of the MCP gateway that were ended. Gateways with one store refuse them together.

use std::time::Duration;

use super::StoreFuture;

/// Storage for sessions that were ended.
pub trait SessionStore: Send + Sync + 'static {
    /// Notes that a session was ended, for as long as its ID would be good. An earlier note with more time is kept.
    fn end_session<'a>(&'a self, id: &'a str, kept: Duration) -> StoreFuture<'a, ()>;

    /// Returns true if the session was ended, and its ID would still be good.
    fn is_session_ended<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool>;
}
