//! Tools that are chosen by rank: those that pass the cut, up to `top_k` and within the caps, and signatures of the next.

use std::collections::HashSet;

use super::Choice;
use crate::gate::verdict::RefusalCode;
use crate::router::answers::explain::LOOK_BEYOND;
use crate::router::ranking::cut::{Cut, Shortfall, leaders_first};
use crate::router::ranking::rank::{Candidate, sort};
use crate::router::selection::caps::Caps;

/// Candidates of a turn, divided by the cut.
pub(super) struct Ranked {
    /// Candidates that pass, each intent's best first.
    pub(super) passing: Vec<Candidate>,
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
    /// Divides candidates into those that pass the cut, each intent's best first, and the others.
    pub(super) fn passing(&self, candidates: &[Candidate]) -> Ranked {
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
    pub(super) fn rank(&mut self, ranked: &Ranked, continues: bool) {
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
    pub(super) fn caps(&self, places: usize) -> Caps<'a> {
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
}
