//! Requests that must not be done twice.

use std::time::Duration;

use super::{Committed, ContentHash};

/// How long the id of a request is remembered.
pub const REQUEST_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A request that must not be done twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The caller's name for it.
    pub id: String,
    /// SHA-256 of the request.
    pub body_hash: ContentHash,
    /// The answer that was given, opaque to the store.
    pub answer: Vec<u8>,
    /// The revision that it was given at, and when.
    pub committed: Committed,
}

/// A request to record with a change.
#[derive(Debug, Clone)]
pub struct PendingRequest {
    /// The caller's name for it.
    pub id: String,
    /// SHA-256 of the request.
    pub body_hash: ContentHash,
    /// The answer, opaque to the store.
    pub answer: Vec<u8>,
}
