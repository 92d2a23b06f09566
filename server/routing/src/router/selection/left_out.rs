//! Tools that were considered and left out.

use crate::gate::verdict::RefusalCode;
use crate::router::answers::answer_size;
use crate::router::ranking::cut::Shortfall;

/// Left-out tool with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Slot of the tool; `None` for a name that is unknown to this caller.
    pub slot: Option<u32>,
    /// Name as the request wrote it; empty when ranking found the tool.
    pub asked_for: String,
    /// Reason as a code.
    pub code: RefusalCode,
    /// Highest cosine of the tool's summary and an intent.
    pub overlap: f32,
    /// Configuration key of the exceeded limit. Such a tool is reported even if refusals were not requested.
    pub limit: Option<&'static str>,
    /// Reason why the tool did not pass the cut, where the cut left it out.
    pub shortfall: Option<Shortfall>,
}

impl LeftOut {
    /// Creates an entry for a tool that was requested by name.
    #[must_use]
    pub fn named(slot: Option<u32>, name: &str, code: RefusalCode) -> Self {
        let asked_for = name.to_owned();
        Self { slot, asked_for, code, overlap: 0.0, limit: None, shortfall: None }
    }

    /// Creates an entry for a tool that does not fit in the largest answer.
    #[must_use]
    pub fn over_size(slot: u32, overlap: f32) -> Self {
        Self {
            slot: Some(slot),
            asked_for: String::new(),
            code: RefusalCode::OverTokenBudget,
            overlap,
            limit: Some(answer_size::LIMIT),
            shortfall: None,
        }
    }
}
