//! Reasons for which a request ends before its service has answered it, without a protocol.

/// Reason for which a request ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many requests are in progress, or the connection or tenant has its share of them.
    RequestsFull,
    /// Requests have waited longer than allowed for a while.
    RequestsWaited,
    /// The tenant has its share of the calls in progress.
    TenantFull,
    /// The caller's deadline passed before its turn came.
    Late,
    /// Too many answers have not been read by their callers.
    AnswersUnread,
}

impl Refusal {
    /// Returns the message for the caller.
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::RequestsFull => "too many requests are under way",
            Self::RequestsWaited => "requests wait too long for their turn",
            Self::TenantFull => "the tenant has its share of the calls under way",
            Self::Late => "the deadline passed before the call's turn came",
            Self::AnswersUnread => "too many answers wait for their callers to read them",
        }
    }

    /// Returns true if the process or the tenant has too much to do, so that a retry may succeed.
    pub(crate) const fn is_overload(self) -> bool {
        !matches!(self, Self::Late)
    }
}

/// Error of a body that came too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request's body took too long to come")]
pub(crate) struct BodyTooSlow;
