//! Choice of the tools of the active set and of their places. Kept tools come first and stay in place, so that prompt
//! caches remain valid. Always-loaded, pinned and ranked tools follow, within the token budget.

mod everything;
mod kept;
mod limits;
mod ranked;

use std::collections::{HashMap, HashSet};

use crate::gate::handle::{ActiveSet, ShownTool};
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibility;
use crate::router::allow::Allowed;
use crate::router::answers::answer_size::{self, AnswerSize};
use crate::router::query::{Options, RouteQuery, SelectionRule};
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::{Candidate, Embedded, FoundBy};
use crate::router::selection::active_set::{ActiveSetBuilder, Bounds};
use crate::router::selection::continuity::Change;
use crate::router::selection::eviction::Eviction;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;
use toolgate_core::state::AgentState;

/// Tool of the active set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// Slot of the tool.
    pub slot: u32,
    /// Highest cosine of the tool's summary and an intent; 0 when nothing was embedded.
    pub overlap: f32,
    /// Score that the tool was ranked by.
    pub score: f32,
    /// Reason why the tool is in the set.
    pub found_by: FoundBy,
    /// True if this definition was not shown before.
    pub newly_promoted: bool,
    /// True if the tool is sent as a signature while the others are sent with full definitions.
    pub is_brief: bool,
    /// Number of further Route calls for which the tool stays because the model asked for it; 0 to 3.
    pub held_for: u8,
}

impl Chosen {
    /// Returns the tool's entry in the handle, with one held Route call used up.
    #[must_use]
    pub fn shown(&self, snapshot: &Snapshot) -> ShownTool {
        let tool = snapshot.tool(self.slot);
        let of = if self.is_brief { ShownTool::by_signature } else { ShownTool::new };
        of(tool.key, &tool.hash).held_for(self.held_for.saturating_sub(1))
    }
}

/// Choice of the tools of an active set.
pub struct Choice<'a> {
    snapshot: &'a Snapshot,
    allowed: &'a Allowed,
    embedded: &'a Embedded<'a>,
    options: &'a Options,
    state: &'a AgentState,
    level: Level,
    set: ActiveSetBuilder<'a>,
    eviction: Eviction<'a>,
    /// Scores of the candidates, by slot.
    scores: HashMap<u32, f32>,
    left_out: Vec<LeftOut>,
    /// Slots of left-out tools that exceed a limit of the configuration.
    over_limit: HashSet<u32>,
}

/// Result of a choice.
pub struct Outcome {
    /// Tools in their places.
    pub active: Vec<Chosen>,
    /// Tools that were left out.
    pub left_out: Vec<LeftOut>,
    /// Difference from the active set of the previous turn.
    pub change: Change,
}

impl<'a> Choice<'a> {
    /// Creates an empty choice.
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        allowed: &'a Allowed,
        embedded: &'a Embedded<'a>,
        query: &'a RouteQuery,
        level: Level,
    ) -> Self {
        let options = &query.options;
        let needed = needed(snapshot, options);
        let bounds = Bounds {
            tools: options.bound(needed.len()),
            routed: options.routed_bound(needed.len()),
            tokens: options.active_token_budget,
            new_tokens: options.schema_token_budget,
            size: AnswerSize::new(options.message_max, options.detail),
        };
        let has_overlaps = !embedded.is_words_only(snapshot);
        Self {
            snapshot,
            allowed,
            embedded,
            options,
            state: &query.state,
            level,
            set: ActiveSetBuilder::new(snapshot, bounds),
            eviction: Eviction::new(snapshot, query, needed, has_overlaps),
            scores: HashMap::new(),
            left_out: Vec::new(),
            over_limit: HashSet::new(),
        }
    }

    /// Chooses the active set: kept and discovered tools, then required ones, then the best of `candidates`. Without
    /// deferral, chooses all tools instead of the best. By the rule of Tool Attention, no tool is kept.
    #[must_use]
    pub fn make(
        mut self,
        previous: Option<&ActiveSet>,
        candidates: &[Candidate],
        deferred: bool,
    ) -> Outcome {
        self.scores = candidates.iter().map(|c| (c.slot, c.score)).collect();
        let named = candidates.iter().filter(|c| c.found_by == FoundBy::Name);
        self.eviction.need(named.map(|candidate| candidate.slot));
        let ranked = self.passing(candidates);
        let places = self.options.top_k + self.options.signature_tail;
        self.eviction.want(ranked.passing.iter().take(places).map(|candidate| candidate.slot));
        let kept_from = previous.filter(|_| self.options.selection_rule == SelectionRule::Own);
        if let Some(kept_from) = kept_from {
            self.keep(kept_from);
        }
        if self.options.selection_rule == SelectionRule::Own {
            self.discover(previous.is_some());
        }
        if deferred {
            self.eviction.trim(&mut self.set, 0);
            self.require();
            self.rank(&ranked, kept_from.is_some());
        } else {
            self.set.unbind_tools();
            self.eviction.trim(&mut self.set, 0);
            self.require();
            self.all(&ranked);
            // Drops refusals of tools that the ranking cut and that are sent after all.
            self.left_out.retain(|tool| tool.slot.is_none_or(|slot| !self.set.contains(slot)));
        }
        let (mut active, mut removed) = self.set.finish();
        if let Some(previous) = previous.filter(|_| kept_from.is_none()) {
            removed = kept::compare(self.snapshot, self.allowed, previous, &mut active);
        }
        let change = self.eviction.finish(&active, removed);
        Outcome { active, left_out: self.left_out, change }
    }

    /// Promotes always-loaded tools up to a ceiling regardless of the budget, then tools pinned by the policy and by
    /// the request.
    fn require(&mut self) {
        self.always_load();
        for slot in self.snapshot.pinned.iter().copied() {
            if self.allowed.contains(slot) {
                self.promote(slot, FoundBy::Pin);
            }
        }
        for name in &self.options.pinned {
            self.pin(name);
        }
    }

    fn pin(&mut self, name: &str) {
        let slot = self.snapshot.names.requested(name, &self.snapshot.tools);
        let visibility = slot.map(|slot| self.allowed.visibilities.tool(self.snapshot, slot));
        let code = match (slot, visibility) {
            (None, _) | (_, None | Some(Visibility::Hidden)) => RefusalCode::UnknownTool,
            (Some(slot), _) if self.allowed.excludes(self.snapshot, slot) => RefusalCode::Excluded,
            (_, Some(Visibility::Locked)) => RefusalCode::PreconditionUnmet,
            (Some(slot), Some(Visibility::Allowed)) => return self.promote(slot, FoundBy::Pin),
        };
        // An unknown tool and a hidden one look the same: neither has a slot.
        let slot = slot.filter(|_| code != RefusalCode::UnknownTool);
        let overlap = slot.map_or(0.0, |slot| self.embedded.score_of(self.snapshot, slot).0);
        self.left_out.push(LeftOut { overlap, ..LeftOut::named(slot, name, code) });
    }

    /// Adds a tool with its full definition. A tool whose signature was shown before moves to the end of the set.
    fn promote(&mut self, slot: u32, found_by: FoundBy) {
        if !self.set.contains(slot) {
            if !self.set.has_bytes(slot, false) {
                self.leave_over(slot, answer_size::LIMIT);
            } else if !self.add(slot, found_by, false) {
                self.leave_over(slot, None);
            }
        } else if self.set.is_brief(slot) {
            self.add(slot, found_by, false);
        }
    }

    /// Adds a tool if there is room for it. Returns false if there is none.
    fn add(&mut self, slot: u32, found_by: FoundBy, is_brief: bool) -> bool {
        if self.set.affords(slot, is_brief) && self.set.has_bytes(slot, is_brief) {
            self.eviction.make_room(&mut self.set, slot, is_brief);
        }
        let (overlap, score) = self.scored(slot);
        let newly_promoted = true;
        let held_for = 0;
        let chosen = Chosen { slot, overlap, score, found_by, newly_promoted, is_brief, held_for };
        self.set.add(chosen)
    }

    /// Returns the tool's overlap and the score that it is ranked by.
    fn scored(&self, slot: u32) -> (f32, f32) {
        let (overlap, alone) = self.embedded.score_of(self.snapshot, slot);
        (overlap, self.scores.get(&slot).copied().unwrap_or(alone))
    }

    fn leave_out(&mut self, candidates: &[Candidate], code: RefusalCode) {
        let untaken = candidates.iter().filter(|c| !self.set.contains(c.slot));
        self.left_out.extend(untaken.map(|c| LeftOut {
            slot: Some(c.slot),
            asked_for: String::new(),
            code,
            overlap: c.overlap,
            limit: None,
            shortfall: None,
        }));
    }
}

/// Returns the tools that are wanted regardless of their overlap: always loaded, or pinned by the policy or the
/// request.
fn needed(snapshot: &Snapshot, options: &Options) -> HashSet<u32> {
    let pinned = options.pinned.iter();
    let pinned = pinned.filter_map(|name| snapshot.names.requested(name, &snapshot.tools));
    let by_catalog = snapshot.always_load.iter().chain(&snapshot.pinned).copied();
    pinned.chain(by_catalog).collect()
}

#[cfg(test)]
mod tests;
