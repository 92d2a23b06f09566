//! Refusals on request: the tools that were considered and left out, the reasons, and the conditions that would unlock
//! them.

use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibilities;
use crate::router::allow::Allowed;
use crate::router::query::Options;
use crate::router::ranking::cut::Cut;
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::Embedded;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// Maximum number of refusals in one answer.
pub const REFUSALS_MAX: usize = 100;

/// Number of candidates beyond `top_k` that an explanation covers.
pub const LOOK_BEYOND: usize = 20;

/// Refusal that is ready to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Slot of the tool; `None` for an unknown tool.
    pub slot: Option<u32>,
    /// Name as the request wrote it; empty when ranking found the tool.
    pub asked_for: String,
    /// Reason as a code.
    pub code: RefusalCode,
    /// Reason as text for a reader.
    pub message: String,
    /// Conditions that would unlock the tool; all of them must hold.
    pub unlock: Vec<String>,
    /// Highest cosine of the tool's summary and an intent.
    pub overlap: f32,
}

/// Returns the left-out tools to report. With an explanation these are all of them, locked tools included. Without one
/// these are the tools that the request named and those that exceed a limit of the configuration.
///
/// # Errors
/// Same as [`Embedded::rank`].
pub fn wanted(
    snapshot: &Snapshot,
    allowed: &Allowed,
    embedded: &Embedded<'_>,
    options: &Options,
    level: Level,
    mut left_out: Vec<LeftOut>,
) -> Result<Vec<LeftOut>, Error> {
    if options.explain {
        left_out.extend(locked_candidates(snapshot, allowed, embedded, options, level)?);
    } else {
        left_out.retain(|tool| !tool.asked_for.is_empty() || tool.limit.is_some());
    }
    Ok(left_out)
}

/// Returns the locked tools that would pass the cut if their preconditions held.
///
/// # Errors
/// Same as [`Embedded::rank`].
fn locked_candidates(
    snapshot: &Snapshot,
    allowed: &Allowed,
    embedded: &Embedded<'_>,
    options: &Options,
    level: Level,
) -> Result<Vec<LeftOut>, Error> {
    let locked = allowed.locked(snapshot);
    if locked.is_clear() {
        return Ok(Vec::new());
    }
    let ranked = embedded.rank(snapshot, options.top_k, Some(&locked))?;
    let cut = Cut::of(snapshot, embedded, options, level, &ranked);
    let wanted = ranked.into_iter().filter(|candidate| cut.passes(candidate));
    let left_out = |c: crate::router::ranking::rank::Candidate| LeftOut {
        slot: Some(c.slot),
        asked_for: String::new(),
        code: RefusalCode::PreconditionUnmet,
        overlap: c.overlap,
        limit: None,
        shortfall: None,
    };
    Ok(wanted.map(left_out).collect())
}

/// Returns refusals with the highest overlap first, each tool once, at most [`REFUSALS_MAX`].
#[must_use]
pub fn refusals(
    snapshot: &Snapshot,
    visibilities: &Visibilities,
    left_out: Vec<LeftOut>,
) -> Vec<Refusal> {
    let mut left_out = left_out;
    left_out.sort_by(|a, b| b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot)));
    let mut seen = std::collections::HashSet::new();
    left_out.retain(|tool| tool.slot.is_none_or(|slot| seen.insert(slot)));
    left_out.truncate(REFUSALS_MAX);
    left_out.into_iter().map(|tool| refusal(snapshot, visibilities, tool)).collect()
}

fn refusal(snapshot: &Snapshot, visibilities: &Visibilities, tool: LeftOut) -> Refusal {
    let unlock = tool.slot.map_or_else(Vec::new, |slot| visibilities.unlock(snapshot, slot));
    let message = match tool.code {
        RefusalCode::UnknownTool => "there is no such tool".to_owned(),
        RefusalCode::PreconditionUnmet => format!("needs {}", unlock.join(" and ")),
        RefusalCode::BelowThreshold | RefusalCode::BelowCutoff => below(&tool),
        RefusalCode::BeyondTopK => "better tools filled top_k".to_owned(),
        RefusalCode::BeyondCap => beyond_cap(&tool),
        RefusalCode::OverTokenBudget => over_budget(snapshot, &tool),
        RefusalCode::Excluded => "the request excludes it".to_owned(),
        RefusalCode::KeptForCache => {
            "the set is kept: changing it would lose more cache than it saves, \
            and the best tool of each intent is there"
                .to_owned()
        }
        other => other.name().to_lowercase(),
    };
    let slot = tool.slot;
    let asked_for = tool.asked_for;
    let code = tool.code;
    let overlap = tool.overlap;
    Refusal { slot, asked_for, code, message, unlock, overlap }
}

fn below(tool: &LeftOut) -> String {
    let unsaid = || tool.code.name().to_lowercase();
    tool.shortfall.map_or_else(unsaid, |shortfall| shortfall.message(tool.overlap))
}

fn beyond_cap(tool: &LeftOut) -> String {
    let which =
        tool.limit.map_or_else(|| "a cap".to_owned(), |limit| format!("the places of {limit}"));
    format!("better tools filled {which}")
}

fn over_budget(snapshot: &Snapshot, tool: &LeftOut) -> String {
    let tokens = tool.slot.map_or(0, |slot| snapshot.tool(slot).schema_tokens);
    if let Some(limit) = tool.limit {
        return format!("its schema of {tokens} tokens does not fit what others leave of {limit}");
    }
    format!("its schema of {tokens} tokens does not fit what is left of the budget")
}
