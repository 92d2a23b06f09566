//! Which tools make the active set, and in which places: kept ones first where they were, so that prompt
//! caches hold; then always-loaded, pinned and ranked ones, within the token budget.

use std::collections::HashSet;

use super::allow::Allowed;
use super::caps::Caps;
use super::query::Options;
use super::rank::{Candidate, Embedded, FoundBy, sort};
use crate::gate::handle::{ActiveSet, ShownTool, TOOLS_MAX};
use crate::gate::standing::Standing;
use crate::gate::verdict::RefusalCode;
use crate::shard::snapshot::Snapshot;

/// A tool of the active set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// Its slot.
    pub slot: u32,
    /// The best cosine over the intents; 0 when nothing was embedded.
    pub overlap: f32,
    /// What the ranking went by.
    pub score: f32,
    /// How it came here.
    pub found_by: FoundBy,
    /// True when this definition was not shown before.
    pub newly_promoted: bool,
}

/// A tool that was considered and left out.
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
}

/// The active set as it grows.
pub struct Choice<'a> {
    snapshot: &'a Snapshot,
    allowed: &'a Allowed,
    embedded: &'a Embedded<'a>,
    options: &'a Options,
    tokens_left: Option<u32>,
    caps: Caps<'a>,
    taken: HashSet<u32>,
    /// The tools so far.
    pub active: Vec<Chosen>,
    /// What could not be had.
    pub left_out: Vec<LeftOut>,
}

impl<'a> Choice<'a> {
    /// An empty choice.
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        allowed: &'a Allowed,
        embedded: &'a Embedded<'a>,
        options: &'a Options,
    ) -> Self {
        let tokens_left = options.schema_token_budget;
        let caps = Caps::new(&snapshot.policy);
        let (taken, active, left_out) = (HashSet::new(), Vec::new(), Vec::new());
        Self { snapshot, allowed, embedded, options, tokens_left, caps, taken, active, left_out }
    }

    /// Tools of the turn before, in their places. One whose definition changed is promoted anew, at the
    /// end; one that may no longer run is dropped.
    pub fn keep(&mut self, previous: &ActiveSet) {
        let mut changed = Vec::new();
        for shown in &previous.tools {
            let slot = self.snapshot.names.key(&shown.id);
            let Some(slot) = slot.filter(|slot| self.allowed.contains(*slot)) else { continue };
            let tool = self.snapshot.tool(slot);
            if *shown == ShownTool::new(tool.key, &tool.hash) {
                self.push(slot, FoundBy::Kept, false);
            } else {
                changed.push(slot);
            }
        }
        for slot in changed {
            self.promote(slot, FoundBy::Kept);
        }
    }

    /// Tools that are always loaded, then those that the policy and the request pinned.
    pub fn require(&mut self) {
        let always = self.snapshot.always_load.iter().map(|slot| (*slot, FoundBy::AlwaysLoad));
        let pinned = self.snapshot.pinned.iter().map(|slot| (*slot, FoundBy::Pin));
        for (slot, found_by) in always.chain(pinned) {
            if self.allowed.contains(slot) {
                self.promote(slot, found_by);
            }
        }
        for name in &self.options.pinned {
            self.pin(name);
        }
    }

    /// The best candidates that pass the threshold, at most `top_k`, and within the policy's caps. Each
    /// intent's best goes before the rest, so that a turn with several intents covers all of them.
    pub fn rank(&mut self, candidates: &[Candidate]) {
        let by_words = self.embedded.is_words_only(self.snapshot);
        let passes = |c: &Candidate| {
            let threshold = threshold_of(self.snapshot, self.options, c.slot);
            by_words || c.found_by == FoundBy::Name || c.overlap >= threshold
        };
        let (mut ordered, failing): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().copied().partition(passes);
        // Stable: within the leaders, and within the rest, the best stay first.
        ordered.sort_by_key(|candidate| !candidate.leads);
        let (mut chosen, beyond) = self.cut(&ordered);
        sort(&mut chosen);
        for candidate in chosen {
            self.promote(candidate.slot, candidate.found_by);
        }
        self.leave_out(&beyond, RefusalCode::BeyondTopK);
        self.leave_out(&failing, RefusalCode::BelowThreshold);
    }

    /// The first `top_k` that the caps admit, and the others.
    fn cut(&mut self, ordered: &[Candidate]) -> (Vec<Candidate>, Vec<Candidate>) {
        let (mut chosen, mut beyond) = (Vec::new(), Vec::new());
        for candidate in ordered {
            let is_new = !self.taken.contains(&candidate.slot);
            let admitted = !is_new || self.caps.admit(self.snapshot, candidate.slot);
            if chosen.len() == self.options.top_k || !admitted {
                beyond.push(*candidate);
                continue;
            }
            if is_new {
                self.caps.count(self.snapshot, candidate.slot);
            }
            chosen.push(*candidate);
        }
        (chosen, beyond)
    }

    fn pin(&mut self, name: &str) {
        let slot = self.snapshot.names.requested(name, &self.snapshot.tools);
        let standing = slot.map(|slot| self.allowed.standings.tool(self.snapshot, slot));
        let code = match (slot, standing) {
            (None, _) | (_, None | Some(Standing::Hidden)) => RefusalCode::UnknownTool,
            (Some(slot), _) if self.allowed.excludes(self.snapshot, slot) => RefusalCode::Excluded,
            (_, Some(Standing::Locked)) => RefusalCode::PreconditionUnmet,
            (Some(slot), Some(Standing::Open)) => return self.promote(slot, FoundBy::Pin),
        };
        // An unknown tool and a hidden one look the same: neither has a slot.
        let slot = slot.filter(|_| code != RefusalCode::UnknownTool);
        let overlap = slot.map_or(0.0, |slot| self.embedded.score_of(self.snapshot, slot).0);
        self.left_out.push(LeftOut { slot, asked_for: name.to_owned(), code, overlap });
    }

    fn promote(&mut self, slot: u32, found_by: FoundBy) {
        if self.taken.contains(&slot) {
            return;
        }
        let cost = self.snapshot.tool(slot).schema_tokens;
        let fits =
            self.tokens_left.is_none_or(|left| cost <= left) && self.active.len() < TOOLS_MAX;
        if fits {
            self.tokens_left = self.tokens_left.map(|left| left - cost);
            self.push(slot, found_by, true);
        } else {
            let (overlap, _) = self.embedded.score_of(self.snapshot, slot);
            let (asked_for, code) = (String::new(), RefusalCode::OverTokenBudget);
            self.left_out.push(LeftOut { slot: Some(slot), asked_for, code, overlap });
        }
    }

    fn push(&mut self, slot: u32, found_by: FoundBy, newly_promoted: bool) {
        if self.taken.insert(slot) {
            if !is_ranked(found_by) {
                self.caps.count(self.snapshot, slot);
            }
            let (overlap, mut score) = self.embedded.score_of(self.snapshot, slot);
            if found_by == FoundBy::Name {
                score = 1.0 + overlap;
            }
            self.active.push(Chosen { slot, overlap, score, found_by, newly_promoted });
        }
    }

    fn leave_out(&mut self, candidates: &[Candidate], code: RefusalCode) {
        let untaken = candidates.iter().filter(|c| !self.taken.contains(&c.slot));
        self.left_out.extend(untaken.map(|c| LeftOut {
            slot: Some(c.slot),
            asked_for: String::new(),
            code,
            overlap: c.overlap,
        }));
    }
}

/// Ranked tools are counted when they are cut, the others when they are taken.
fn is_ranked(found_by: FoundBy) -> bool {
    matches!(found_by, FoundBy::Overlap | FoundBy::Name | FoundBy::Words)
}

/// The least overlap of a tool: the policy's for it, or else the request's.
pub(super) fn threshold_of(snapshot: &Snapshot, options: &Options, slot: u32) -> f32 {
    snapshot.tool(slot).threshold.unwrap_or(options.threshold)
}
