//! A tool that was considered and left out.

use super::answer_size;
use super::cut::Shortfall;
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
    /// What it falls short of, where the cut left it out.
    pub shortfall: Option<Shortfall>,
}

impl LeftOut {
    /// Returns a tool that was asked for by name.
    #[must_use]
    pub fn named(slot: Option<u32>, name: &str, code: RefusalCode) -> Self {
        let asked_for = name.to_owned();
        Self { slot, asked_for, code, overlap: 0.0, limit: None, shortfall: None }
    }

    /// A tool that has no room in the largest answer.
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
