//! Which kept tools go for new ones: nobody before the set would pass a bound; then those that the conversation has left
//! behind.

use std::collections::HashSet;

use super::active_set::{ActiveSetBuilder, Excess};
use super::choose::Chosen;
use super::continuity::{CacheCost, Change, Conversation, Prompt};
use super::query::RouteQuery;
use super::rank::FoundBy;
use crate::shard::snapshot::Snapshot;

/// Decides who goes.
pub struct Eviction<'a> {
    snapshot: &'a Snapshot,
    conversation: Conversation<'a>,
    query: &'a RouteQuery,
    /// Tools that stay whatever their overlap: pinned, always loaded, named by an intent, chosen by this turn.
    needed: HashSet<u32>,
    /// The best of this turn.
    wanted: HashSet<u32>,
    /// False when overlaps could not be had: no tool goes on a guess, but for the bound on tools.
    has_overlaps: bool,
    kept_for_cache: bool,
    cost: CacheCost,
}

impl<'a> Eviction<'a> {
    /// Returns the policy of one turn.
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        query: &'a RouteQuery,
        needed: HashSet<u32>,
        has_overlaps: bool,
    ) -> Self {
        Self {
            snapshot,
            conversation: Conversation::new(&query.state, query.options.threshold),
            query,
            needed,
            wanted: HashSet::new(),
            has_overlaps,
            kept_for_cache: false,
            cost: CacheCost::default(),
        }
    }

    /// Notes tools that stay whatever their overlap.
    pub fn need(&mut self, slots: impl Iterator<Item = u32>) {
        self.needed.extend(slots);
    }

    /// Notes the best tools of the turn: they go for want of tokens only.
    pub fn want(&mut self, slots: impl Iterator<Item = u32>) {
        self.wanted.extend(slots);
    }

    /// Makes room for one more tool where that pays. Leaves the set as it is where it does not.
    pub fn make_room(&mut self, set: &mut ActiveSetBuilder<'_>, slot: u32, is_brief: bool) {
        let excess = set.excess(slot, is_brief);
        if excess.is_none() {
            return;
        }
        let mut victims = self.for_tokens(set, excess);
        let freed: u64 = victims.iter().map(|slot| set.tokens_of(*slot)).sum();
        if freed < excess.tokens {
            return;
        }
        victims = self.with_count(set, excess, victims);
        if !is_enough(set, excess, &victims) {
            return;
        }
        let cost = self.cost(set, &victims);
        self.cost.lost += cost.lost;
        self.cost.saved += cost.saved;
        // Without room for tokens a search finds the tool; the bound on tools holds for chosen ones too, which are needed.
        if excess.tokens > 0 && self.counts_cache() && !cost.pays() {
            self.kept_for_cache = true;
            return;
        }
        set.remove(&victims);
    }

    /// Takes kept tools out until the set is within its bounds with `joining` more, or none is left that may go. Where
    /// new ones would pass the bound on tools all go at once that the turn does not need: a change costs the cache of what follows,
    /// however many tools it takes out.
    pub fn trim(&mut self, set: &mut ActiveSetBuilder<'_>, joining: usize) {
        let victims = self.for_tokens(set, set.overrun());
        set.remove(&victims);
        let over = set.overrun_with(joining);
        let most = over.tools.max(over.routed);
        if most == 0 {
            return;
        }
        let left = set.tools().iter().filter(|one| self.is_left(set, one)).map(slot);
        let goes_for_others = joining > 0 && self.has_overlaps;
        let left = left.take(if goes_for_others { usize::MAX } else { most }).collect();
        set.remove(&self.with_count(set, over, left));
    }

    /// Takes out what the turn does not need for `joining` new ones of its message, where the caller has the cache counted:
    /// what is behind the tools is lost then. What would pass the bound on tools goes, and whatever costs more to carry
    /// along than to read what follows it anew, called lately or not; under a budget of tokens, that decides. Where nothing
    /// behind the tools is cached they are sent anew each turn, and keeping one spares nothing.
    pub fn trim_by_price(&mut self, set: &mut ActiveSetBuilder<'_>, joining: usize) {
        if !self.counts_cache() || !self.has_overlaps {
            return;
        }
        let unneeded = set.tools().iter().filter(|one| self.is_unneeded(set, one)).map(slot);
        let unneeded: Vec<u32> = unneeded.collect();
        let over = set.overrun_with(joining);
        let is_over = over.tools.max(over.routed) > 0;
        let pays = || cost_in(set, &unneeded, Prompt { tools: 0, history: 0 }).pays();
        let is_uncached = self.query.options.history_tokens == Some(0);
        let has_budget = set.bounds().tokens.is_some();
        if is_uncached || joining > 0 && !has_budget && (is_over || pays()) {
            set.remove(&unneeded);
        }
    }

    /// Returns true if tools that would only do as well as others of the set are worth the cache that they cost. Where
    /// they are not the set stays, and the answer says so.
    pub fn pays(&mut self, set: &ActiveSetBuilder<'_>) -> bool {
        let Some(history) = self.query.options.history_tokens else { return true };
        let prompt = Prompt { tools: set.used(), history: history.into() };
        let cost = CacheCost::new(prompt, 0, 0);
        let pays = self.query.options.ignore_cache_cost || cost.pays();
        if !pays {
            self.kept_for_cache = true;
            self.cost.lost += cost.lost;
            self.cost.saved += cost.saved;
        }
        pays
    }

    /// Returns true for a tool that was called in the last turns.
    #[must_use]
    pub fn called_lately(&self, slot: u32) -> bool {
        self.conversation.called_lately(self.names(slot))
    }

    /// Returns what happened, with the kept tools that may go next time.
    #[must_use]
    pub fn finish(self, active: &[Chosen], removed: Vec<u32>) -> Change {
        let evictable = active.iter().filter(|chosen| self.may_go(chosen)).map(slot).collect();
        Change { evictable, removed, kept_for_cache: self.kept_for_cache, cost: self.cost }
    }

    fn counts_cache(&self) -> bool {
        let options = &self.query.options;
        options.history_tokens.is_some() && !options.ignore_cache_cost
    }

    /// Returns left-behind tools, the least overlap first, until they cost what is over.
    fn for_tokens(&self, set: &ActiveSetBuilder<'_>, over: Excess) -> Vec<u32> {
        let mut may_go: Vec<&Chosen> = set.tools().iter().filter(|one| self.may_go(one)).collect();
        may_go.sort_by(|a, b| a.overlap.total_cmp(&b.overlap));
        let mut freed = 0;
        let until_enough = may_go.into_iter().take_while(|chosen| {
            let enough = freed >= over.tokens;
            freed += set.tokens_of(chosen.slot);
            !enough
        });
        until_enough.map(slot).collect()
    }

    /// Returns the victims with as many kept tools more as are over the bounds on tools, where there are so many that are
    /// not needed: tools that the turn and the model could do without first, then the least overlap.
    fn with_count(
        &self,
        set: &ActiveSetBuilder<'_>,
        over: Excess,
        mut victims: Vec<u32>,
    ) -> Vec<u32> {
        let may = |one: &&Chosen| self.is_kept(one) && !victims.contains(&one.slot);
        let mut kept: Vec<&Chosen> = set.tools().iter().filter(may).collect();
        kept.sort_by(|a, b| {
            let use_of = |one: &Chosen| (self.wanted.contains(&one.slot), !self.is_left(set, one));
            use_of(a).cmp(&use_of(b)).then(a.overlap.total_cmp(&b.overlap))
        });
        let rest = over.routed.saturating_sub(routed(set, &victims));
        let of_turn = kept.extract_if(.., |one| !set.is_searched(one.slot));
        let mut of_turn: Vec<&Chosen> = of_turn.collect();
        let others = of_turn.split_off(rest.min(of_turn.len()));
        victims.extend(of_turn.into_iter().map(slot));
        let rest = over.tools.saturating_sub(victims.len());
        victims.extend(others.into_iter().chain(kept).take(rest).map(slot));
        victims
    }

    /// Returns true for a tool of the turn before that nothing of this turn needs.
    fn is_kept(&self, chosen: &Chosen) -> bool {
        chosen.found_by == FoundBy::Kept && !self.needed.contains(&chosen.slot)
    }

    /// Returns true for a kept tool that this turn does not want, and that the model did not ask for.
    fn is_unneeded(&self, set: &ActiveSetBuilder<'_>, chosen: &Chosen) -> bool {
        self.is_kept(chosen)
            && !self.wanted.contains(&chosen.slot)
            && !chosen.newly_promoted
            && !set.is_searched(chosen.slot)
    }

    /// Returns true for an unneeded tool that was not called lately either.
    fn is_left(&self, set: &ActiveSetBuilder<'_>, chosen: &Chosen) -> bool {
        self.is_unneeded(set, chosen) && !self.called_lately(chosen.slot)
    }

    /// Returns true for a kept tool that the conversation has left behind, so that it may go for want of tokens.
    fn may_go(&self, chosen: &Chosen) -> bool {
        self.has_overlaps
            && self.is_kept(chosen)
            && !chosen.newly_promoted
            && chosen.held_for == 0
            && self.conversation.has_left(self.names(chosen.slot), chosen.overlap)
    }

    fn names(&self, slot: u32) -> [&str; 2] {
        let tool = self.snapshot.tool(slot);
        [&*tool.model_name, tool.id.name.as_str()]
    }

    fn cost(&self, set: &ActiveSetBuilder<'_>, victims: &[u32]) -> CacheCost {
        let history = self.query.options.history_tokens.map_or(0, u64::from);
        cost_in(set, victims, Prompt { tools: set.used(), history })
    }
}

fn cost_in(set: &ActiveSetBuilder<'_>, victims: &[u32], prompt: Prompt) -> CacheCost {
    let active = set.tools();
    let first = active.iter().position(|chosen| victims.contains(&chosen.slot)).unwrap_or(0);
    let after = active[first..].iter().filter(|chosen| !victims.contains(&chosen.slot));
    let after = after.map(|chosen| set.tokens_of(chosen.slot)).sum();
    let gone = victims.iter().map(|slot| set.tokens_of(*slot)).sum();
    CacheCost::new(prompt, gone, after)
}

/// Returns how many of these tools the model did not search for.
fn routed(set: &ActiveSetBuilder<'_>, slots: &[u32]) -> usize {
    slots.iter().filter(|slot| !set.is_searched(**slot)).count()
}

fn is_enough(set: &ActiveSetBuilder<'_>, over: Excess, victims: &[u32]) -> bool {
    victims.len() >= over.tools && routed(set, victims) >= over.routed
}

fn slot(chosen: &Chosen) -> u32 {
    chosen.slot
}
