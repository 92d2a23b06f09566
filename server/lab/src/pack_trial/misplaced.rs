//! Requests that fit another tool better than their own.

use super::bed::Placed;
use super::requests::Request;
use toolgate_core::identity::ToolId;

/// Voice of requests with several steps. They need several tools, so another tool may rightly be first.
const SEVERAL: &str = "multi_step";

/// Thresholds above which a request is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Last acceptable rank, from 1.
    pub within: usize,
    /// Maximum score difference by which another tool may be ahead, 0 to 1.
    pub margin: f32,
}

/// Reported request, and the ranking that it leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Misplaced<'a> {
    /// Reported request.
    pub request: &'a Request,
    /// Rank of its tool, from 1; `None` if it is not among the tools that Route ranks.
    pub rank: Option<usize>,
    /// Tool at rank 1.
    pub first: Option<&'a ToolId>,
    /// Score difference to the tool at rank 1.
    pub lead: f32,
}

/// Returns the requests whose tool ranks too late or too far behind another tool.
#[must_use]
pub fn misplaced<'a>(
    requests: &'a [Request],
    placed: &'a [Option<Placed>],
    limits: Limits,
) -> Vec<Misplaced<'a>> {
    let told = |(request, placed): (&'a Request, &'a Option<Placed>)| {
        let Placed { rank, lead, first } = placed.as_ref()?;
        let is_late = rank.is_none_or(|rank| rank > limits.within);
        let is_behind = *rank != Some(1) && *lead > limits.margin && request.voice != SEVERAL;
        let told = Misplaced { request, rank: *rank, first: first.as_ref(), lead: *lead };
        (is_late || is_behind).then_some(told)
    };
    requests.iter().zip(placed).filter_map(told).collect()
}
