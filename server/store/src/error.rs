//! Errors of a store.

use toolgate_core::error::{Cause, Error};

/// Reason that a store call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The target was changed after the change was prepared. Prepare the change again.
    #[error("it was changed meanwhile")]
    Conflict,
    /// Two tools of the tenant would have the same model-facing name.
    #[error("the model-facing name {0:?} is taken")]
    NameTaken(String),
    /// The tenant would have more tools than allowed.
    #[error("the tenant would have {actual} tools")]
    TooManyTools {
        /// Number of tools that the tenant would have.
        actual: u64,
    },
    /// The tenant would have more MCP servers than allowed.
    #[error("the tenant would have {actual} MCP servers")]
    TooManyServers {
        /// Number of MCP servers that the tenant would have.
        actual: u64,
    },
    /// The request id was already used for another request.
    #[error("the request id was used for another request")]
    RequestIdReused,
    /// The stored content can't be read.
    #[error("stored content is damaged: {0}")]
    Damaged(String),
    /// The database can't be reached, is full, or refused the call.
    #[error("the database failed")]
    Unavailable(#[source] Cause),
}

/// Cause of a database failure on a full disk.
#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
pub(super) struct DiskFull(#[source] pub(super) Cause);

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::StoreDamaged(error.into()),
            StoreError::Unavailable(cause) if cause.is::<DiskFull>() => Self::StoreFull(cause),
            other => Self::StoreUnavailable(Box::new(other)),
        }
    }
}
