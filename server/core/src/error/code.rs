//! Codes and reasons of errors: the canonical codes of google.rpc.Code (AIP-193), and the service's own reasons. Protocols map
//! both to their own forms.

use super::Error;

/// Canonical code of an error (google.rpc.Code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request is malformed or over a limit.
    InvalidArgument,
    /// A limit on resources is reached.
    ResourceExhausted,
    /// A resource that the request names does not exist.
    NotFound,
    /// Others changed the same data.
    Aborted,
    /// A resource that the request would create exists already.
    AlreadyExists,
    /// The state of the service does not allow it.
    FailedPrecondition,
    /// There is no valid credential.
    Unauthenticated,
    /// The credential does not allow it.
    PermissionDenied,
    /// The service cannot answer now; a retry may help.
    Unavailable,
    /// The deadline passed.
    DeadlineExceeded,
    /// Stored data is damaged.
    DataLoss,
    /// This version does not serve it.
    Unimplemented,
    /// A defect of the service.
    Internal,
}

impl Code {
    /// Returns the name in metrics and spans, such as `NOT_FOUND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::NotFound => "NOT_FOUND",
            Self::Aborted => "ABORTED",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Unavailable => "UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::DataLoss => "DATA_LOSS",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
        }
    }
}

/// Reason of an error. The contract documents each (`ErrorReason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the contract documents each reason under the same name")]
pub enum Reason {
    InvalidField,
    LimitExceeded,
    MalformedCatalog,
    TenantNotFound,
    ServerNotFound,
    EtagMismatch,
    RequestIdReused,
    ToolsRejected,
    HandleInvalid,
    PageTokenInvalid,
    Unauthenticated,
    PermissionDenied,
    Overloaded,
    TenantLimited,
    Draining,
    DeadlineExceeded,
    EncoderUnavailable,
    StoreUnavailable,
    RevisionNotReached,
    NotImplemented,
    Internal,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 21] = [
        Self::InvalidField,
        Self::LimitExceeded,
        Self::MalformedCatalog,
        Self::TenantNotFound,
        Self::ServerNotFound,
        Self::EtagMismatch,
        Self::RequestIdReused,
        Self::ToolsRejected,
        Self::HandleInvalid,
        Self::PageTokenInvalid,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::Overloaded,
        Self::TenantLimited,
        Self::Draining,
        Self::DeadlineExceeded,
        Self::EncoderUnavailable,
        Self::StoreUnavailable,
        Self::RevisionNotReached,
        Self::NotImplemented,
        Self::Internal,
    ];

    /// Returns the name on the wire and in metrics, such as `TENANT_NOT_FOUND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidField => "INVALID_FIELD",
            Self::LimitExceeded => "LIMIT_EXCEEDED",
            Self::MalformedCatalog => "MALFORMED_CATALOG",
            Self::TenantNotFound => "TENANT_NOT_FOUND",
            Self::ServerNotFound => "SERVER_NOT_FOUND",
            Self::EtagMismatch => "ETAG_MISMATCH",
            Self::RequestIdReused => "REQUEST_ID_REUSED",
            Self::ToolsRejected => "TOOLS_REJECTED",
            Self::HandleInvalid => "HANDLE_INVALID",
            Self::PageTokenInvalid => "PAGE_TOKEN_INVALID",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Overloaded => "OVERLOADED",
            Self::TenantLimited => "TENANT_LIMITED",
            Self::Draining => "DRAINING",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::EncoderUnavailable => "ENCODER_UNAVAILABLE",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::RevisionNotReached => "REVISION_NOT_REACHED",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::Internal => "INTERNAL",
        }
    }
}

impl Error {
    /// Returns the code of the error.
    #[must_use]
    pub fn code(&self) -> Code {
        self.kind().0
    }

    /// Returns the reason of the error.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.kind().1
    }

    fn kind(&self) -> (Code, Reason) {
        match self {
            Self::InvalidFields(_) => (Code::InvalidArgument, Reason::InvalidField),
            Self::LimitExceeded { .. } => (Code::InvalidArgument, Reason::LimitExceeded),
            Self::StockExceeded { .. } => (Code::ResourceExhausted, Reason::LimitExceeded),
            Self::AnswerTooLarge { .. } => (Code::ResourceExhausted, Reason::LimitExceeded),
            Self::MalformedCatalog { .. } => (Code::InvalidArgument, Reason::MalformedCatalog),
            Self::TenantNotFound(_) => (Code::NotFound, Reason::TenantNotFound),
            Self::ServerNotFound(_) => (Code::NotFound, Reason::ServerNotFound),
            Self::EtagMismatch { .. } => (Code::Aborted, Reason::EtagMismatch),
            Self::Contended { .. } => (Code::Aborted, Reason::EtagMismatch),
            Self::RequestIdReused(_) => (Code::AlreadyExists, Reason::RequestIdReused),
            Self::ToolsRejected(_) => (Code::FailedPrecondition, Reason::ToolsRejected),
            Self::HandleInvalid(_) => (Code::InvalidArgument, Reason::HandleInvalid),
            Self::PageTokenInvalid => (Code::InvalidArgument, Reason::PageTokenInvalid),
            Self::Unauthenticated(_) => (Code::Unauthenticated, Reason::Unauthenticated),
            Self::PermissionDenied(_) => (Code::PermissionDenied, Reason::PermissionDenied),
            Self::Overloaded => (Code::ResourceExhausted, Reason::Overloaded),
            Self::TenantLimited { .. } => (Code::ResourceExhausted, Reason::TenantLimited),
            Self::Draining => (Code::Unavailable, Reason::Draining),
            Self::DeadlineExceeded => (Code::DeadlineExceeded, Reason::DeadlineExceeded),
            Self::EncoderUnavailable(_) => (Code::Unavailable, Reason::EncoderUnavailable),
            Self::StoreUnavailable(_) => (Code::Unavailable, Reason::StoreUnavailable),
            Self::StoreDamaged(_) => (Code::DataLoss, Reason::StoreUnavailable),
            Self::StoreFull(_) => (Code::Unavailable, Reason::StoreUnavailable),
            Self::CatalogUnvouched { .. } => (Code::Unavailable, Reason::StoreUnavailable),
            Self::AuditUnavailable(_) => (Code::Unavailable, Reason::StoreUnavailable),
            Self::AuditFull(_) => (Code::Unavailable, Reason::StoreUnavailable),
            Self::RevisionNotReached { .. } => (Code::Unavailable, Reason::RevisionNotReached),
            Self::NotImplemented(_) => (Code::Unimplemented, Reason::NotImplemented),
            Self::Internal(_) => (Code::Internal, Reason::Internal),
        }
    }

    /// Returns the message with all causes, if there are any: for the log alone.
    #[must_use]
    pub fn with_inner_causes(&self) -> Option<String> {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self)?;
        loop {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            match cause.source() {
                Some(inner) => cause = inner,
                None => return Some(text),
            }
        }
    }
}
