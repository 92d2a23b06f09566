//! Why a tool is left out or a call refused, and the words for it.

use toolgate_core::schema::Violation;

/// Why. The wire's `RefusalCode` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalCode {
    /// Exists, but was not shown.
    ToolNotAvailable,
    /// Does not exist, or not for this caller.
    UnknownTool,
    /// A precondition does not hold.
    PreconditionUnmet,
    /// A scope is missing.
    ScopeMissing,
    /// The handle has expired.
    HandleExpired,
    /// The handle is not ours, or not this holder's.
    HandleInvalid,
    /// The definition changed since it was shown.
    SchemaChanged,
    /// The arguments don't satisfy the schema.
    ArgumentsInvalid,
    /// Overlap below the threshold.
    BelowThreshold,
    /// Passed, but so did `top_k` better ones.
    BeyondTopK,
    /// Passed, but the schema did not fit the budget.
    OverTokenBudget,
    /// The request excluded it.
    Excluded,
    /// A cap is reached.
    BeyondCap,
    /// The tool waits for approval.
    Quarantined,
    /// The score is too far below the best one's.
    BelowCutoff,
    /// Passed, but the set is kept for its cache.
    KeptForCache,
}

impl RefusalCode {
    /// The name that metrics and logs carry, such as `UNKNOWN_TOOL`.
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

/// A call that may not run, written for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub code: RefusalCode,
    /// What was wrong and what to do.
    pub message: String,
    /// Model-facing names that may be called instead.
    pub available: Vec<String>,
    /// The search to make; empty when none would help.
    pub search: String,
    /// The input schema, for wrong arguments.
    pub input_schema: String,
    /// Where the arguments are wrong.
    pub violations: Vec<Violation>,
    /// What would unlock the tool: each of them is needed.
    pub unlock: Vec<String>,
    /// The visible tool whose name is nearest to an unknown one; empty when none is near.
    pub nearest: String,
}

impl Refused {
    /// A refusal with a message and nothing else.
    #[must_use]
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            available: Vec::new(),
            search: String::new(),
            input_schema: String::new(),
            violations: Vec::new(),
            unlock: Vec::new(),
            nearest: String::new(),
        }
    }
}

/// A call that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The slot of the tool to run.
    pub slot: u32,
    /// The arguments to run it with, where they came in an envelope; else those that were sent.
    pub arguments: Option<String>,
}

/// The verdict on one call.
pub type Verdict = Result<Allowed, Box<Refused>>;
