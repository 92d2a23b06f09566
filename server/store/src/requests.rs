//! Requests with ids, recorded so that a repeated request is not executed twice.

use std::time::Duration;

use super::{Committed, ContentHash};

/// Time that a request id is remembered.
pub const REQUEST_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Recorded request, which must not be executed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Id that the caller gave the request.
    pub id: String,
    /// SHA-256 of the request.
    pub body_hash: ContentHash,
    /// Answer that was given, opaque to the store.
    pub answer: Vec<u8>,
    /// Revision and time of the answer.
    pub committed: Committed,
}

/// Request to record with a change.
#[derive(Debug, Clone)]
pub struct PendingRequest {
    /// Id that the caller gave the request.
    pub id: String,
    /// SHA-256 of the request.
    pub body_hash: ContentHash,
    /// Answer to record, opaque to the store.
    pub answer: Vec<u8>,
}
