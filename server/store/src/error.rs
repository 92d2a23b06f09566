//! Why a store did not do what it was asked.

use toolgate_core::error::{Cause, Error};

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What is changed was changed since the change was prepared: prepare it again.
    #[error("it was changed meanwhile")]
    Conflict,
    /// Two tools of the tenant would have the same model-facing name.
    #[error("the model-facing name {0:?} is taken")]
    NameTaken(String),
    /// The tenant would have more tools than it may.
    #[error("the tenant would have {actual} tools")]
    TooManyTools {
        /// The tools that the tenant would have.
        actual: u64,
    },
    /// The tenant would have more MCP servers than it may.
    #[error("the tenant would have {actual} MCP servers")]
    TooManyServers {
        /// The MCP servers that the tenant would have.
        actual: u64,
    },
    /// The request id stands for another request.
    #[error("the request id was used for another request")]
    RequestIdReused,
    /// The stored content can't be read back.
    #[error("stored content is damaged: {0}")]
    Damaged(String),
    /// The database can't be reached, is full, or refused.
    #[error("the database failed")]
    Unavailable(#[source] Cause),
}

/// Why the database did not do it: it finds no room.
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
