//! Which tools make the active set, and in which places: kept ones first where they were, so that prompt
//! caches hold; then always-loaded, pinned and ranked ones, within the token budget.

use std::collections::{HashMap, HashSet};

use super::allow::Allowed;
use super::caps::Caps;
use super::continuity::Change;
use super::cut::{Cut, leaders_first};
use super::explain::LOOK_BEYOND;
use super::level::Level;
use super::query::{Options, RouteQuery};
use super::rank::{Candidate, Embedded, FoundBy, sort};
use super::room::Room;
use crate::gate::handle::{ActiveSet, ShownTool, TOOLS_MAX};
use crate::gate::standing::Standing;
use crate::gate::verdict::RefusalCode;
use crate::shard::snapshot::Snapshot;

/// Bytes of definitions that one answer holds where nothing is deferred: clients refuse messages past 4 MiB.
const BYTES_MAX: usize = 3 << 20;

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
    /// Sent as a signature where the others are sent with full definitions.
    pub is_brief: bool,
}

impl Chosen {
    /// What the handle says of it.
    #[must_use]
    pub fn shown(&self, snapshot: &Snapshot) -> ShownTool {
        let tool = snapshot.tool(self.slot);
        let of = if self.is_brief { ShownTool::by_signature } else { ShownTool::new };
        of(tool.key, &tool.hash)
    }
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
    level: Level,
    /// What newly promoted tools may still cost.
    tokens_left: Option<u32>,
    room: Room<'a>,
    taken: HashSet<u32>,
    /// Of the candidates, by slot.
    scores: HashMap<u32, f32>,
    active: Vec<Chosen>,
    left_out: Vec<LeftOut>,
}

/// What became of a choice.
pub struct Outcome {
    /// The tools, in their places.
    pub active: Vec<Chosen>,
    /// What could not be had.
    pub left_out: Vec<LeftOut>,
    /// How the set differs from that of the turn before.
    pub change: Change,
}

/// How a tool is shown.
#[derive(Clone, Copy)]
struct Form {
    is_new: bool,
    is_brief: bool,
}

/// What ranked candidates come to.
#[derive(Default)]
struct Picked {
    chosen: Vec<Candidate>,
    beyond_top_k: Vec<Candidate>,
    beyond_cap: Vec<Candidate>,
}

impl<'a> Choice<'a> {
    /// An empty choice.
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        allowed: &'a Allowed,
        embedded: &'a Embedded<'a>,
        query: &'a RouteQuery,
        level: Level,
    ) -> Self {
        let options = &query.options;
        let may_evict = !embedded.is_words_only(snapshot);
        Self {
            snapshot,
            allowed,
            embedded,
            options,
            level,
            tokens_left: options.schema_token_budget,
            room: Room::new(snapshot, query, needed(snapshot, options), may_evict),
            taken: HashSet::new(),
            scores: HashMap::new(),
            active: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Chooses: kept and discovered tools, required ones, then the best of `candidates`, or all
    /// tools where nothing is deferred.
    #[must_use]
    pub fn make(
        mut self,
        previous: Option<&ActiveSet>,
        discovered: &[String],
        candidates: &[Candidate],
        deferred: bool,
    ) -> Outcome {
        self.scores = candidates.iter().map(|c| (c.slot, c.score)).collect();
        let named = candidates.iter().filter(|c| c.found_by == FoundBy::Name);
        self.room.need(named.map(|candidate| candidate.slot));
        if let Some(previous) = previous {
            self.keep(previous);
        }
        self.discover(discovered);
        self.room.trim(&mut self.active);
        self.require();
        if deferred {
            self.rank(candidates);
        } else {
            self.all(candidates);
            // What ranking cut may be sent after all.
            let sent: HashSet<u32> = self.active.iter().map(|chosen| chosen.slot).collect();
            self.left_out.retain(|tool| tool.slot.is_none_or(|slot| !sent.contains(&slot)));
        }
        let change = self.room.finish(&self.active);
        Outcome { active: self.active, left_out: self.left_out, change }
    }

    /// Tools of the turn before, in their places. One whose definition changed is promoted anew, at the
    /// end; one that may no longer run is dropped.
    fn keep(&mut self, previous: &ActiveSet) {
        let mut changed = Vec::new();
        for shown in &previous.tools {
            let Some(slot) = self.snapshot.names.key(&shown.id) else { continue };
            if !self.allowed.contains(slot) {
                self.drop_kept(slot);
                continue;
            }
            let tool = self.snapshot.tool(slot);
            if shown.is_of(&tool.hash) {
                let is_brief = *shown == ShownTool::by_signature(tool.key, &tool.hash);
                self.push(slot, FoundBy::Kept, Form { is_new: false, is_brief });
            } else {
                changed.push(slot);
            }
        }
        for slot in changed {
            self.promote(slot, FoundBy::Kept);
        }
    }

    /// A hidden tool goes without a word, like one that was unregistered.
    fn drop_kept(&mut self, slot: u32) {
        if self.allowed.standings.tool(self.snapshot, slot) != Standing::Hidden {
            self.room.change.removed.push(slot);
        }
    }

    /// Tools that the conversation discovered: kept, and sent again, since they are not in the handle when
    /// the history that showed them is gone.
    fn discover(&mut self, names: &[String]) {
        let slots = names
            .iter()
            .filter_map(|name| self.snapshot.names.requested(name, &self.snapshot.tools));
        for slot in slots.collect::<Vec<_>>() {
            if self.allowed.contains(slot) {
                self.promote(slot, FoundBy::Kept);
            }
        }
    }

    /// Tools that are always loaded, whatever the budget; then those that the policy and the request pinned.
    fn require(&mut self) {
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

    /// The best candidates that pass the cut, each intent's best first, at most `top_k`, and within the policy's
    /// caps.
    fn rank(&mut self, candidates: &[Candidate]) {
        let cut = Cut::of(self.snapshot, (self.embedded, self.options), self.level, candidates);
        let (mut ordered, failing): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().copied().partition(|candidate| cut.passes(candidate));
        leaders_first(&mut ordered);
        let Picked { mut chosen, beyond_top_k, beyond_cap } = self.pick(&ordered);
        sort(&mut chosen);
        for candidate in &chosen {
            self.promote(candidate.slot, candidate.found_by);
        }
        if !chosen.is_empty() {
            let next = chosen.iter().chain(&beyond_top_k).chain(&failing);
            self.tail(next.filter(|candidate| !cut.is_barred(candidate)));
        }
        let looked_at = beyond_top_k.len().min(LOOK_BEYOND);
        self.leave_out(&beyond_top_k[..looked_at], RefusalCode::BeyondTopK);
        self.leave_out(&beyond_cap, RefusalCode::BeyondCap);
        self.leave_out(&failing[..failing.len().min(LOOK_BEYOND)], RefusalCode::BelowThreshold);
    }

    /// The next of the ranking as signatures, first those that were too long for the budget. What the set has as
    /// signatures already counts too.
    fn tail<'c>(&mut self, next: impl Iterator<Item = &'c Candidate>) {
        let mut caps = Caps::new(&self.snapshot.policy, self.options.untrusted);
        self.active.iter().for_each(|chosen| caps.count(self.snapshot, chosen.slot));
        let mut left = self.options.signature_tail;
        for Candidate { slot, found_by, .. } in next.copied() {
            if left == 0 {
                break;
            }
            if self.taken.contains(&slot) {
                left -= usize::from(self.is_brief(slot));
            } else if caps.admit(self.snapshot, slot)
                && !caps.gives_way(self.snapshot, slot)
                && self.add(slot, found_by, true)
            {
                caps.count(self.snapshot, slot);
                left -= 1;
            }
        }
        self.left_out.retain(|tool| tool.slot.is_none_or(|slot| !self.taken.contains(&slot)));
    }

    /// The first `top_k` that the caps admit, and the others. Tools of untrusted MCP servers beyond their share get
    /// the places that nobody else wants.
    fn pick(&self, ordered: &[Candidate]) -> Picked {
        let mut caps = Caps::new(&self.snapshot.policy, self.options.untrusted);
        self.active.iter().for_each(|chosen| caps.count(self.snapshot, chosen.slot));
        let mut picked = Picked::default();
        let mut waiting = Vec::new();
        for candidate in ordered {
            let is_new = !self.taken.contains(&candidate.slot);
            let admitted = !is_new || caps.admit(self.snapshot, candidate.slot);
            if picked.chosen.len() == self.options.top_k {
                picked.beyond_top_k.push(*candidate);
            } else if !admitted {
                picked.beyond_cap.push(*candidate);
            } else if is_new && caps.gives_way(self.snapshot, candidate.slot) {
                waiting.push(*candidate);
            } else {
                if is_new {
                    caps.count(self.snapshot, candidate.slot);
                }
                picked.chosen.push(*candidate);
            }
        }
        for candidate in waiting {
            let has_room = picked.chosen.len() < self.options.top_k;
            if has_room && caps.admit(self.snapshot, candidate.slot) {
                caps.count(self.snapshot, candidate.slot);
                picked.chosen.push(candidate);
            } else {
                picked.beyond_cap.push(candidate);
            }
        }
        picked
    }

    /// Every tool that may be chosen, in the catalog's order, which is the same for every intent. Where not
    /// all of them have room, the best go first. The policy's caps are for choosing by rank.
    fn all(&mut self, candidates: &[Candidate]) {
        let slots = || (0u32..).take(self.snapshot.tools.len());
        let slots: Vec<u32> = slots().filter(|slot| self.allowed.contains(*slot)).collect();
        let bytes = |slot: &u32| self.snapshot.tool(*slot).definition.text().len();
        let all_fit =
            slots.len() <= TOOLS_MAX && slots.iter().map(bytes).sum::<usize>() <= BYTES_MAX;
        if self.tokens_left.is_some() || !all_fit {
            self.rank(candidates);
        }
        let mut left = BYTES_MAX;
        for slot in slots {
            if let Some(rest) = left.checked_sub(bytes(&slot)) {
                left = rest;
                self.promote(slot, FoundBy::NotDeferred);
            }
        }
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

    /// With its full definition; at the end of the set also where its signature was shown before.
    fn promote(&mut self, slot: u32, found_by: FoundBy) {
        if !self.taken.contains(&slot) {
            if !self.add(slot, found_by, false) {
                let (overlap, _) = self.embedded.score_of(self.snapshot, slot);
                let (asked_for, code) = (String::new(), RefusalCode::OverTokenBudget);
                self.left_out.push(LeftOut { slot: Some(slot), asked_for, code, overlap });
            }
        } else if self.is_brief(slot) {
            self.add(slot, found_by, false);
        }
    }

    fn is_brief(&self, slot: u32) -> bool {
        self.active.iter().any(|one| one.slot == slot && one.is_brief)
    }

    /// Adds a tool where there is room for it; whether there was.
    fn add(&mut self, slot: u32, found_by: FoundBy, is_brief: bool) -> bool {
        let cost = tokens(self.snapshot, slot, is_brief);
        let is_always_loaded = found_by == FoundBy::AlwaysLoad;
        let fits = self.tokens_left.is_none_or(|left| cost <= left)
            && self.active.len() < TOOLS_MAX
            && self.room.make(cost, &mut self.active);
        let is_added = fits || (is_always_loaded && self.active.len() < TOOLS_MAX);
        if is_added {
            self.tokens_left = self.tokens_left.map(|left| left.saturating_sub(cost));
            if self.taken.remove(&slot) {
                self.room.free(slot);
                self.active.retain(|one| one.slot != slot);
            }
            self.push(slot, found_by, Form { is_new: true, is_brief });
        }
        is_added
    }

    fn push(&mut self, slot: u32, found_by: FoundBy, form: Form) {
        if self.taken.insert(slot) {
            let Form { is_new: newly_promoted, is_brief } = form;
            self.room.fill(slot, tokens(self.snapshot, slot, is_brief));
            let (overlap, alone) = self.embedded.score_of(self.snapshot, slot);
            let score = self.scores.get(&slot).copied().unwrap_or(alone);
            self.active.push(Chosen { slot, overlap, score, found_by, newly_promoted, is_brief });
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

/// Tokens of what the model sees of a tool.
fn tokens(snapshot: &Snapshot, slot: u32, is_brief: bool) -> u32 {
    let tool = snapshot.tool(slot);
    if is_brief { tool.signature_tokens() } else { tool.schema_tokens }
}

/// Tools that are wanted whatever their overlap.
fn needed(snapshot: &Snapshot, options: &Options) -> HashSet<u32> {
    let pinned = options.pinned.iter();
    let pinned = pinned.filter_map(|name| snapshot.names.requested(name, &snapshot.tools));
    let by_catalog = snapshot.always_load.iter().chain(&snapshot.pinned).copied();
    pinned.chain(by_catalog).collect()
}
