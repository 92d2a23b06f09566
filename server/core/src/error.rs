//! Errors of the service, as one closed set. `api` maps each to a gRPC status in one place; nothing here knows of the
//! wire.

mod code;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::time::Duration;

pub use code::{Code, Reason};

/// Cause of an error, kept for the log.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// Field of a request that is wrong, with the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field in the request, such as `intents[2].text`.
    pub field: String,
    /// Description of the problem and the fix.
    pub problem: String,
}

impl FieldViolation {
    /// Creates a violation of `field`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields are malformed or out of range.
    #[error("{}", list(.0))]
    InvalidFields(Vec<FieldViolation>),
    /// The request is larger than a limit allows.
    #[error("{limit}: {actual} is more than the {maximum} allowed")]
    LimitExceeded {
        /// Name of the limit in the configuration, such as `limits.max_intent_size`.
        limit: &'static str,
        /// Allowed maximum.
        maximum: u64,
        /// Size or count in the request.
        actual: u64,
    },
    /// The tenant would store more than a limit allows.
    #[error("{limit}: the tenant would have {actual}, more than the {maximum} allowed")]
    StockExceeded {
        /// Name of the limit in the configuration.
        limit: &'static str,
        /// Allowed maximum.
        maximum: u64,
        /// Count that the tenant would have.
        actual: u64,
    },
    /// The answer is larger than a message may be, and can't be cut.
    #[error(
        "{limit}: the answer has {actual} bytes, more than the {maximum} of a message: {instead}"
    )]
    AnswerTooLarge {
        /// Name of the limit in the configuration.
        limit: &'static str,
        /// Allowed maximum in bytes.
        maximum: u64,
        /// Size of the answer in bytes.
        actual: u64,
        /// Advice on a request whose answer is smaller.
        instead: Cow<'static, str>,
    },
    /// The body of `tools/list` is not JSON, or not of MCP's shape.
    #[error("tools_list_json, line {line}, column {column}: {problem}")]
    MalformedCatalog {
        /// Line of the mistake, from 1; 0 when the mistake has no place.
        line: usize,
        /// Column of the mistake, from 1; 0 when the mistake has no place.
        column: usize,
        /// Description of the problem and the fix.
        problem: String,
    },
    /// No MCP server was ever registered for the tenant.
    #[error("tenant {0:?} has no catalog: register an MCP server first")]
    TenantNotFound(String),
    /// The tenant has no MCP server of this name.
    #[error("there is no MCP server {0:?}")]
    ServerNotFound(String),
    /// The stored version is not the expected one.
    #[error("the etag is {actual:?}, not {expected:?}: read it again, then retry")]
    EtagMismatch {
        /// Etag that the caller expected.
        expected: String,
        /// Stored etag; empty when nothing is stored.
        actual: String,
    },
    /// Other callers changed the same data during each of several tries.
    #[error("{what} {tries} times; retry")]
    Contended {
        /// What conflicted with what, such as "approval conflicted with other changes of this MCP server".
        what: &'static str,
        /// Number of tries.
        tries: usize,
    },
    /// The request id was used for another request.
    #[error("request_id {0:?} was used for another request within 24 hours: choose a new one")]
    RequestIdReused(String),
    /// `all_or_nothing` was set, and tools were rejected.
    #[error("all_or_nothing: nothing was stored, because {}", list(.0))]
    ToolsRejected(Vec<FieldViolation>),
    /// The active-set handle is invalid, belongs to another tenant or principal, or has expired.
    #[error("active_set_handle: {0}: call Route without it to begin a new one")]
    HandleInvalid(&'static str),
    /// The page token was not issued by this service.
    #[error("page_token: not issued for this listing: begin again without it")]
    PageTokenInvalid,
    /// The call carries no valid credential.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The credential does not allow this RPC or this tenant.
    #[error("{0}")]
    PermissionDenied(String),
    /// The service is at capacity.
    #[error("at capacity: retry after the delay given")]
    Overloaded,
    /// The tenant uses as much as a limit allows.
    #[error("{limit}: the tenant uses as much as it may: retry after the delay given")]
    TenantLimited {
        /// Name of the limit in the configuration.
        limit: &'static str,
        /// Time after which a retry is worth trying.
        retry_after: Duration,
    },
    /// The service is draining.
    #[error("the server is stopping: retry, and another replica answers")]
    Draining,
    /// The caller's deadline has passed or can't be met.
    #[error("the deadline passed before the answer was ready")]
    DeadlineExceeded,
    /// The encoder can't take texts now.
    #[error("the encoder is not available")]
    EncoderUnavailable(#[source] Cause),
    /// The store can't be read or written now.
    #[error("the store is not available")]
    StoreUnavailable(#[source] Cause),
    /// Stored data can't be read back.
    #[error(
        "the stored catalog is damaged: `toolgate store verify` says what of it; put a backup back, or register again \
         what is lost (or set the policy again if it is that)"
    )]
    StoreDamaged(#[source] Cause),
    /// The disk of the store is full.
    #[error(
        "the disk of the store is full, and nothing was changed: make room there; what is deleted needs some room too"
    )]
    StoreFull(#[source] Cause),
    /// The catalog was last compared with the store longer ago than a verdict allows.
    #[error(
        "this replica could not compare its catalog with the store {}, and store.max_staleness is {bound:?}: \
         ask another replica, or again when the store is back",
        since(*.age)
    )]
    CatalogUnvouched {
        /// Time since the last comparison; `None` if there was none since the start.
        age: Option<Duration>,
        /// Allowed maximum.
        bound: Duration,
    },
    /// The audit file can't be written now.
    #[error("the audit file can't be written: nothing was changed")]
    AuditUnavailable(#[source] Cause),
    /// The disk of the audit file is full.
    #[error(
        "the disk of the audit file is full, and nothing was changed: make room there; what is deleted needs some room too"
    )]
    AuditFull(#[source] Cause),
    /// The catalog has not reached the revision that the caller asked for.
    #[error("min_revision {wanted}: this replica has seen revision {seen}")]
    RevisionNotReached {
        /// Requested revision.
        wanted: u64,
        /// Newest revision that this replica has seen.
        seen: u64,
    },
    /// This version does not serve this part of the contract.
    #[error("{0} is not served by this version")]
    NotImplemented(&'static str),
    /// The call failed because of a defect in the service.
    #[error("internal error")]
    Internal(#[source] Cause),
}

impl Error {
    /// Returns an error about one field.
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::InvalidFields(vec![FieldViolation::new(field, problem)])
    }

    /// Returns an error for a defect, with the cause for the log.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }
}

/// Returns the text of an error followed by its causes, each after the error that it caused.
#[must_use]
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn since(age: Option<Duration>) -> String {
    match age {
        Some(age) => format!("for {} s", age.as_secs()),
        None => "since it was started".to_owned(),
    }
}

fn list(violations: &[FieldViolation]) -> String {
    let lines: Vec<_> = violations.iter().map(|v| format!("{}: {}", v.field, v.problem)).collect();
    lines.join("; ")
}
