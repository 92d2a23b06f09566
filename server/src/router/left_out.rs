//! A tool that was considered and left out.

use super::answer_size;
use crate::gate::verdict::RefusalCode;

/// Which tool, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Its slot; `None` for a name that means nothing to this caller.
    pub slot: Option<u32>,
    /// The name as it was asked for; empty when the tool was found by ranking.
    pub asked_for: String,
    /// Why.
    pub code: RefusalCode,
    /// The best cosine over the intents.
    pub overlap: f32,
    /// The configuration key of the limit that it does not fit, which is told whether or not refusals are asked for.
    pub limit: Option<&'static str>,
}

impl LeftOut {
    /// A tool that has no room in the largest answer.
    #[must_use]
    pub fn over_size(slot: u32, overlap: f32) -> Self {
        Self {
            slot: Some(slot),
            asked_for: String::new(),
            code: RefusalCode::OverTokenBudget,
            overlap,
            limit: Some(answer_size::LIMIT),
        }
    }
}
