//! Choice of the tools of the active set and of their places. Kept tools come first and stay in place, so that prompt
//! caches remain valid. Always-loaded, pinned and ranked tools follow, within the token budget.

mod everything;
mod limits;

use std::collections::{HashMap, HashSet};

use crate::gate::handle::{ActiveSet, ShownTool};
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibility;
use crate::router::allow::Allowed;
use crate::router::answers::answer_size::{self, AnswerSize};
use crate::router::answers::explain::LOOK_BEYOND;
use crate::router::query::{Options, RouteQuery};
use crate::router::ranking::cut::{Cut, Shortfall, leaders_first};
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::{Candidate, Embedded, FoundBy, sort};
use crate::router::ranking::recent;
use crate::router::selection::active_set::{ActiveSetBuilder, Bounds};
use crate::router::selection::caps::Caps;
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

/// Candidates of a turn, divided by the cut.
struct Ranked {
    /// Candidates that pass, each intent's best first.
    passing: Vec<Candidate>,
    failing: Vec<Candidate>,
    /// Slots of failing candidates that a threshold of the policy keeps out.
    barred: HashSet<u32>,
    /// Reasons why the first of the failing candidates do not pass, in their order.
    shortfalls: Vec<Shortfall>,
}

/// Candidates divided by `top_k` and the caps.
#[derive(Default)]
struct Picked {
    chosen: Vec<Candidate>,
    beyond_top_k: Vec<Candidate>,
    beyond_cap: Vec<Candidate>,
    /// Untrusted tools beyond their share, while other tools take the places.
    giving_way: Vec<Candidate>,
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
    /// deferral, chooses all tools instead of the best.
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
        if let Some(previous) = previous {
            self.keep(previous);
        }
        self.discover(previous.is_some());
        if deferred {
            self.eviction.trim(&mut self.set, 0);
            self.require();
            self.rank(&ranked, previous.is_some());
        } else {
            self.set.unbind_tools();
            self.eviction.trim(&mut self.set, 0);
            self.require();
            self.all(&ranked);
            // Drops refusals of tools that the ranking cut and that are sent after all.
            self.left_out.retain(|tool| tool.slot.is_none_or(|slot| !self.set.contains(slot)));
        }
        let (active, removed) = self.set.finish();
        let change = self.eviction.finish(&active, removed);
        Outcome { active, left_out: self.left_out, change }
    }

    /// Keeps tools of the previous turn in their places. A tool whose definition changed is promoted again at the end.
    /// A tool that may no longer run is dropped.
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
                let (overlap, score) = self.scored(slot);
                let is_brief = shown.is_signature_of(&tool.hash);
                if !self.set.has_bytes(slot, is_brief) {
                    self.drop_kept(slot);
                    self.leave_over(slot, answer_size::LIMIT);
                    continue;
                }
                let held_for = shown.routes_held(&tool.hash);
                if held_for > 0 {
                    self.set.note_searched(slot);
                }
                self.set.keep(Chosen {
                    slot,
                    overlap,
                    score,
                    found_by: FoundBy::Kept,
                    newly_promoted: false,
                    is_brief,
                    held_for,
                });
            } else {
                changed.push(slot);
            }
        }
        for slot in changed {
            self.promote(slot, FoundBy::Kept);
        }
    }

    /// Records a dropped tool as removed. A hidden tool is dropped silently, like an unregistered one.
    fn drop_kept(&mut self, slot: u32) {
        if self.allowed.visibilities.tool(self.snapshot, slot) != Visibility::Hidden {
            self.set.note_removed(slot);
        }
    }

    /// Adds tools that the conversation discovered. Tools that were not called yet are kept and sent again, because the
    /// handle lacks them once the history that showed them is gone. If there are more than fit beside a turn's tools,
    /// only the last ones are added. Tools that were called lately are sent again too, unless this continues a set
    /// whose cache is counted. Tools that were called earlier follow the rules for kept tools.
    fn discover(&mut self, continues: bool) {
        let discovered = self.state.discovered.iter();
        let slots = discovered
            .filter_map(|name| self.snapshot.names.requested(name, &self.snapshot.tools))
            .filter(|slot| self.allowed.contains(*slot));
        let slots: Vec<u32> = slots.collect();
        if slots.is_empty() {
            return;
        }
        let succeeded = recent::succeeded(self.snapshot, self.state);
        let (called, searched): (Vec<u32>, Vec<u32>) =
            slots.into_iter().partition(|slot| succeeded.contains(slot));
        if !continues || self.options.history_tokens.is_none() {
            let lately = called.into_iter().filter(|slot| self.eviction.called_lately(*slot));
            let lately: Vec<u32> = lately.collect();
            for slot in limits::last(&lately, self.options.top_k) {
                self.promote(*slot, FoundBy::Kept);
            }
        }
        let most = self.set.bounds().tools.saturating_sub(self.options.top_k);
        for slot in limits::last(&searched, most) {
            self.set.note_searched(*slot);
            self.promote(*slot, FoundBy::Kept);
        }
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

    /// Divides candidates into those that pass the cut, each intent's best first, and the others.
    fn passing(&self, candidates: &[Candidate]) -> Ranked {
        let cut = Cut::of(self.snapshot, self.embedded, self.options, self.level, candidates);
        let (mut passing, failing): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().copied().partition(|candidate| cut.passes(candidate));
        leaders_first(&mut passing);
        let barred = failing.iter().filter(|candidate| cut.is_barred(candidate));
        let barred = barred.map(|candidate| candidate.slot).collect();
        let shortfalls = failing.iter().filter_map(|candidate| cut.shortfall(candidate));
        let shortfalls = shortfalls.take(LOOK_BEYOND).collect();
        Ranked { passing, failing, barred, shortfalls }
    }

    /// Adds the best candidates that pass the cut, at most `top_k` and within the policy's caps. Only a tool that joins
    /// the set uses a place: a tool without room leaves its place to the next.
    fn rank(&mut self, ranked: &Ranked, continues: bool) {
        let mut picked = self.pick(&ranked.passing);
        sort(self.snapshot, &mut picked.chosen);
        if continues {
            self.leave_as_it_is(&mut picked.chosen);
        }
        let of_message = picked.chosen.iter().filter(|one| !one.from_context).map(|one| one.slot);
        let of_message = self.set.affordable(of_message);
        self.eviction.trim_by_price(&mut self.set, of_message);
        let joining = self.set.affordable(picked.chosen.iter().map(|one| one.slot));
        self.eviction.trim(&mut self.set, joining);
        let mut places = self.options.top_k;
        for candidate in &picked.chosen {
            places -= usize::from(self.join(candidate));
        }
        let is_full = picked.chosen.len() == self.options.top_k;
        let passed = if is_full { self.fill(&mut picked, places) } else { 0 };
        let beyond_top_k = &picked.beyond_top_k[passed..];
        if !picked.chosen.is_empty() {
            let next = picked.chosen.iter().chain(&picked.beyond_top_k).chain(&ranked.failing);
            self.tail(next.filter(|candidate| !ranked.barred.contains(&candidate.slot)));
        }
        let looked_at = beyond_top_k.len().min(LOOK_BEYOND);
        self.leave_out(&beyond_top_k[..looked_at], RefusalCode::BeyondTopK);
        self.leave_out(&picked.beyond_cap, RefusalCode::BeyondCap);
        self.leave_out(&picked.giving_way, RefusalCode::BeyondCap);
        for (candidate, shortfall) in ranked.failing.iter().zip(&ranked.shortfalls) {
            self.leave_below(candidate, *shortfall);
        }
    }

    /// Gives the places of chosen tools that had no room to the next candidates that the caps admit. Returns the number
    /// of candidates beyond `top_k` that were considered.
    fn fill(&mut self, picked: &mut Picked, mut places: usize) -> usize {
        let mut caps = self.caps(self.options.top_k);
        let mut passed = 0;
        for candidate in &picked.beyond_top_k {
            if places == 0 {
                break;
            }
            passed += 1;
            let is_new = !self.set.contains(candidate.slot);
            if is_new && !caps.admit(self.snapshot, candidate.slot) {
                picked.beyond_cap.push(*candidate);
            } else if is_new && caps.gives_way(self.snapshot, candidate.slot) {
                picked.giving_way.push(*candidate);
            } else if self.join(candidate) {
                places -= 1;
                if is_new {
                    caps.count(self.snapshot, candidate.slot);
                }
            }
        }
        for candidate in std::mem::take(&mut picked.giving_way) {
            if places == 0 || !caps.admit(self.snapshot, candidate.slot) {
                picked.beyond_cap.push(candidate);
            } else if self.join(&candidate) {
                places -= 1;
                caps.count(self.snapshot, candidate.slot);
            }
        }
        passed
    }

    /// Returns the caps for this number of places, with the tools of the set already counted.
    fn caps(&self, places: usize) -> Caps<'a> {
        let mut caps = Caps::new(&self.snapshot.policy, self.options.untrusted, places);
        self.set.tools().iter().for_each(|chosen| caps.count(self.snapshot, chosen.slot));
        caps
    }

    /// Adds a candidate to the set. Returns false if it has no room.
    fn join(&mut self, candidate: &Candidate) -> bool {
        self.promote(candidate.slot, candidate.found_by);
        // From here on it must not be evicted for a candidate that ranks lower.
        self.eviction.need(std::iter::once(candidate.slot));
        self.set.contains(candidate.slot)
    }

    /// Leaves out new tools for which an existing set is not changed. Of the new tools that only the context beside the
    /// request wants, the best one is kept and the others are left out. If no new tool leads an intent and the change
    /// would lose more cache than it saves, all new tools are left out.
    fn leave_as_it_is(&mut self, chosen: &mut Vec<Candidate>) {
        let is_new = |set: &ActiveSetBuilder<'_>, one: &Candidate| !set.contains(one.slot);
        let best = |one: &&Candidate| one.from_context && one.leads && is_new(&self.set, one);
        let best = chosen.iter().find(best).map(|one| one.slot);
        chosen.retain(|one| !is_new(&self.set, one) || !one.from_context || Some(one.slot) == best);
        let is_pressing = |one: &&Candidate| one.leads || one.found_by == FoundBy::Words;
        let mut new = chosen.iter().filter(|one| is_new(&self.set, one)).peekable();
        let has_new = new.peek().is_some();
        let must_change = new.any(|one| is_pressing(&one)) || self.set.has_changed();
        if has_new && !must_change && !self.eviction.pays(&self.set) {
            let left: Vec<_> = chosen.extract_if(.., |one| is_new(&self.set, one)).collect();
            self.leave_out(&left, RefusalCode::KeptForCache);
        }
    }

    /// Adds the next candidates of the ranking as signatures, first those that were too long for the budget. Signatures
    /// that are already in the set count towards the maximum.
    fn tail<'c>(&mut self, next: impl Iterator<Item = &'c Candidate>) {
        let mut caps = self.caps(self.options.top_k + self.options.signature_tail);
        let mut left = self.options.signature_tail;
        for Candidate { slot, found_by, .. } in next.copied() {
            if left == 0 {
                break;
            }
            if self.set.contains(slot) {
                left -= usize::from(self.set.is_brief(slot));
            } else if caps.admit(self.snapshot, slot)
                && !caps.gives_way(self.snapshot, slot)
                && self.add(slot, found_by, true)
            {
                caps.count(self.snapshot, slot);
                left -= 1;
            }
        }
        self.left_out.retain(|tool| tool.slot.is_none_or(|slot| !self.set.contains(slot)));
    }

    /// Picks the first `top_k` candidates that the caps admit, and divides the others by reason. Tools of untrusted MCP
    /// servers beyond their share get the places that no other tool takes.
    fn pick(&self, ordered: &[Candidate]) -> Picked {
        let mut caps = self.caps(self.options.top_k);
        let mut picked = Picked::default();
        let mut waiting = Vec::new();
        for candidate in ordered {
            let is_new = !self.set.contains(candidate.slot);
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
            if !caps.admit(self.snapshot, candidate.slot) {
                picked.beyond_cap.push(candidate);
            } else if picked.chosen.len() < self.options.top_k {
                caps.count(self.snapshot, candidate.slot);
                picked.chosen.push(candidate);
            } else {
                picked.giving_way.push(candidate);
            }
        }
        picked
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
