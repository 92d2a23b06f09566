//! Requests that fit another tool better than the one that they are for.

use super::bed::Placed;
use super::requests::Request;
use toolgate_core::identity::ToolId;

/// A request of several steps needs several tools: another may well be first.
const SEVERAL: &str = "multi_step";

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The last good rank.
    pub within: usize,
    /// How far another tool may be ahead, as scores have it: 0 to 1.
    pub margin: f32,
}

/// A request, and what it brings up.
#[derive(Debug, Clone, PartialEq)]
pub struct Misplaced<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its tool's rank, from 1; `None` when it is not among those that Route ranks.
    pub rank: Option<usize>,
    /// The tool that is first.
    pub first: Option<&'a ToolId>,
    /// How far that is ahead.
    pub lead: f32,
}

/// The requests whose tool comes too late, or too far behind another.
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
