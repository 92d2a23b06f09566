//! Verdicts on tools and calls: the reason for a refusal, and its explanation to the model.

use toolgate_core::schema::Violation;

/// Reason for a refusal. The API's `RefusalCode` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalCode {
    /// Tool that exists, but was not shown.
    ToolNotAvailable,
    /// Tool that does not exist, or not for this caller.
    UnknownTool,
    /// Precondition that does not hold.
    PreconditionUnmet,
    /// Scope that is missing.
    ScopeMissing,
    /// Handle that has expired.
    HandleExpired,
    /// Handle that this service did not issue, or not for this holder.
    HandleInvalid,
    /// Definition that changed since it was shown.
    SchemaChanged,
    /// Arguments that don't satisfy the schema.
    ArgumentsInvalid,
    /// Overlap below the threshold.
    BelowThreshold,
    /// Tool that passed, but `top_k` better ones did too.
    BeyondTopK,
    /// Tool that passed, but its schema did not fit the budget.
    OverTokenBudget,
    /// Tool that the request excluded.
    Excluded,
    /// Tool beyond a cap on the number of tools.
    BeyondCap,
    /// Tool that waits for approval.
    Quarantined,
    /// Score too far below the best one.
    BelowCutoff,
    /// Tool that passed, but the set is kept unchanged for the provider's cache.
    KeptForCache,
}

impl RefusalCode {
    /// Returns the name in metrics and logs, such as `UNKNOWN_TOOL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolNotAvailable => "TOOL_NOT_AVAILABLE",
            Self::UnknownTool => "UNKNOWN_TOOL",
            Self::PreconditionUnmet => "PRECONDITION_UNMET",
            Self::ScopeMissing => "SCOPE_MISSING",
            Self::HandleExpired => "HANDLE_EXPIRED",
            Self::HandleInvalid => "HANDLE_INVALID",
            Self::SchemaChanged => "SCHEMA_CHANGED",
            Self::ArgumentsInvalid => "ARGUMENTS_INVALID",
            Self::BelowThreshold => "BELOW_THRESHOLD",
            Self::BeyondTopK => "BEYOND_TOP_K",
            Self::OverTokenBudget => "OVER_TOKEN_BUDGET",
            Self::Excluded => "EXCLUDED",
            Self::BeyondCap => "BEYOND_CAP",
            Self::Quarantined => "QUARANTINED",
            Self::BelowCutoff => "BELOW_CUTOFF",
            Self::KeptForCache => "KEPT_FOR_CACHE",
        }
    }
}

/// Refusal of a call, written for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Reason for the refusal.
    pub code: RefusalCode,
    /// Explanation of the mistake, and of the next step.
    pub message: String,
    /// Model-facing names that may be called instead.
    pub available: Vec<String>,
    /// Search to make next. Empty if none would help.
    pub search: String,
    /// Slot of the tool, for a changed definition and for invalid arguments.
    pub slot: Option<u32>,
    /// Input schema, for invalid arguments.
    pub input_schema: String,
    /// Violations of the schema, each with its place in the arguments.
    pub violations: Vec<Violation>,
    /// Requirements that would unlock the tool. All of them are needed.
    pub unlock: Vec<String>,
    /// Visible tool whose name is nearest to an unknown one. Empty if none is near.
    pub nearest: String,
}

impl Refused {
    /// Creates a refusal that has only a code and a message.
    #[must_use]
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            available: Vec::new(),
            search: String::new(),
            slot: None,
            input_schema: String::new(),
            violations: Vec::new(),
            unlock: Vec::new(),
            nearest: String::new(),
        }
    }
}

/// Permission for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Slot of the tool to run.
    pub slot: u32,
    /// Arguments to run the tool with if they were sent in an envelope, or else `None`: use those that were sent.
    pub arguments: Option<String>,
}

/// Verdict on one call.
pub type Verdict = Result<Allowed, Box<Refused>>;
