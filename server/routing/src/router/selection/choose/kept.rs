//! Tools of earlier turns: which stay in their places, which are sent again, and when the set stays as it is.

use super::Choice;
use crate::gate::handle::ActiveSet;
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibility;
use crate::router::allow::Allowed;
use crate::router::answers::answer_size;
use crate::router::ranking::rank::{Candidate, FoundBy};
use crate::router::ranking::recent;
use crate::router::selection::active_set::ActiveSetBuilder;
use crate::router::selection::choose::Chosen;
use crate::shard::snapshot::Snapshot;

impl Choice<'_> {
    /// Keeps tools of the previous turn in their places. A tool whose definition changed is promoted again at the end.
    /// A tool that may no longer run is dropped.
    pub(super) fn keep(&mut self, previous: &ActiveSet) {
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
    pub(super) fn discover(&mut self, continues: bool) {
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
            for slot in last(&lately, self.options.top_k) {
                self.promote(*slot, FoundBy::Kept);
            }
        }
        let most = self.set.bounds().tools.saturating_sub(self.options.top_k);
        for slot in last(&searched, most) {
            self.set.note_searched(*slot);
            self.promote(*slot, FoundBy::Kept);
        }
    }

    /// Leaves out new tools for which an existing set is not changed. Of the new tools that only the context beside the
    /// request wants, the best one is kept and the others are left out. If no new tool leads an intent and the change
    /// would lose more cache than it saves, all new tools are left out.
    pub(super) fn leave_as_it_is(&mut self, chosen: &mut Vec<Candidate>) {
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
}

/// Marks the tools of a newly chosen set that the previous one had in the same form, and returns those that left it. A
/// hidden tool left it silently, like an unregistered one.
pub(super) fn compare(
    snapshot: &Snapshot,
    allowed: &Allowed,
    previous: &ActiveSet,
    active: &mut [Chosen],
) -> Vec<u32> {
    let mut removed = Vec::new();
    for shown in &previous.tools {
        let Some(slot) = snapshot.names.key(&shown.id) else { continue };
        let hash = &snapshot.tool(slot).hash;
        if let Some(chosen) = active.iter_mut().find(|chosen| chosen.slot == slot) {
            let has_same_form = shown.is_signature_of(hash) == chosen.is_brief;
            chosen.newly_promoted = !(shown.is_of(hash) && has_same_form);
        } else if allowed.visibilities.tool(snapshot, slot) != Visibility::Hidden {
            removed.push(slot);
        }
    }
    removed
}

/// Returns the last `most` of these tools, or all if there are fewer.
fn last(slots: &[u32], most: usize) -> &[u32] {
    &slots[slots.len().saturating_sub(most)..]
}
