//! Eviction of kept tools for new ones. No tool is evicted before the set would exceed a bound. Then the tools go that
//! the conversation no longer needs.

use std::collections::HashSet;

use crate::router::query::RouteQuery;
use crate::router::ranking::rank::FoundBy;
use crate::router::selection::active_set::{ActiveSetBuilder, Excess};
use crate::router::selection::choose::Chosen;
use crate::router::selection::continuity::{CacheCost, Change, Conversation};
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use toolgate_llm::price::Dropped;

/// Bytes of a name that a token is estimated to stand for.
const BYTES_A_TOKEN: u64 = 4;

/// Decisions on which kept tools are evicted in one turn.
pub struct Eviction<'a> {
    snapshot: &'a Snapshot,
    conversation: Conversation<'a>,
    query: &'a RouteQuery,
    /// Tools that stay regardless of their overlap: pinned, always loaded, named by an intent, or chosen by this turn.
    needed: HashSet<u32>,
    /// Best tools of this turn.
    wanted: HashSet<u32>,
    /// False if overlaps are unavailable. Then no tool is evicted on a guess, except to meet the bound on tools.
    has_overlaps: bool,
    kept_for_cache: bool,
    cost: CacheCost,
}

impl<'a> Eviction<'a> {
    /// Creates the eviction of one turn.
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

    /// Marks tools that stay regardless of their overlap.
    pub fn need(&mut self, slots: impl Iterator<Item = u32>) {
        self.needed.extend(slots);
    }

    /// Marks the best tools of the turn. For places, other kept tools are evicted before them.
    pub fn want(&mut self, slots: impl Iterator<Item = u32>) {
        self.wanted.extend(slots);
    }

    /// Makes room for one more tool if that pays. Otherwise leaves the set as it is.
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
        // A tool without room for its tokens can still be found by a search. The bound on tools also holds for chosen
        // tools, which are needed.
        if excess.tokens > 0 && self.counts_cache() && !cost.pays() {
            self.kept_for_cache = true;
            return;
        }
        set.remove(&victims);
    }

    /// Evicts kept tools until the set is within its bounds with `joining` more, or no more tools may go. If new tools
    /// would exceed the bound on tools, all unneeded tools that were not called lately go at once: a change costs the
    /// cache of what follows, regardless of how many tools it removes.
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

    /// Evicts the tools that the turn does not need, for `joining` new tools of its message, if the caller has the
    /// cache counted. The change loses the cache of everything behind the tools. It is made if the set would exceed the
    /// bound on tools, or if carrying the tools along costs more than reading what follows again. Recent calls do not
    /// protect a tool here. With a budget of tokens, the budget decides instead. If nothing behind the tools is cached,
    /// the tools are sent again each turn and keeping one saves nothing, so the change is always made.
    pub fn trim_by_price(&mut self, set: &mut ActiveSetBuilder<'_>, joining: usize) {
        if !self.counts_cache() || !self.has_overlaps {
            return;
        }
        let unneeded = set.tools().iter().filter(|one| self.is_unneeded(set, one)).map(slot);
        let unneeded: Vec<u32> = unneeded.collect();
        let over = set.overrun_with(joining);
        let is_over = over.tools.max(over.routed) > 0;
        // The new tools take the history out of the cache anyway, and no search is spared.
        let carried = self.dropped(set, &unneeded);
        let behind = carried.behind.saturating_sub(self.history());
        let pays = || self.weighed(Dropped { behind, searched: 0, ..carried }).pays();
        let is_uncached = self.query.options.history_tokens == Some(0);
        let has_budget = set.bounds().tokens.is_some();
        if is_uncached || joining > 0 && !has_budget && (is_over || pays()) {
            set.remove(&unneeded);
        }
    }

    /// Returns true if new tools that fit only as well as others of the set are worth the cache that they cost. If they
    /// are not, the set stays and the answer says so.
    pub fn pays(&mut self, set: &ActiveSetBuilder<'_>) -> bool {
        if self.query.options.history_tokens.is_none() {
            return true;
        }
        let cost = self.weighed(Dropped { behind: self.history(), ..self.dropped(set, &[]) });
        let pays = self.query.options.ignore_cache_cost || cost.pays();
        if !pays {
            self.kept_for_cache = true;
            self.cost.lost += cost.lost;
            self.cost.saved += cost.saved;
        }
        pays
    }

    /// Returns true if the tool was called in the last turns.
    #[must_use]
    pub fn called_lately(&self, slot: u32) -> bool {
        self.conversation.called_lately(self.names(slot))
    }

    /// Returns the changes of the turn, with the kept tools that may go next time.
    #[must_use]
    pub fn finish(self, active: &[Chosen], removed: Vec<u32>) -> Change {
        let evictable = active.iter().filter(|chosen| self.may_go(chosen)).map(slot).collect();
        Change { evictable, removed, kept_for_cache: self.kept_for_cache, cost: self.cost }
    }

    fn counts_cache(&self) -> bool {
        let options = &self.query.options;
        options.history_tokens.is_some() && !options.ignore_cache_cost
    }

    /// Returns kept tools that the conversation no longer needs, lowest overlap first, until they free the excess
    /// tokens.
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

    /// Adds kept tools to the victims until the excess over the bounds on tools is covered, or no more tools may go.
    /// Tools that neither the turn nor the model needs come first, then those with the lowest overlap.
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

    /// Returns true for a tool of the previous turn that must not stay for this turn.
    fn is_kept(&self, chosen: &Chosen) -> bool {
        chosen.found_by == FoundBy::Kept && !self.needed.contains(&chosen.slot)
    }

    /// Returns true for a kept tool that this turn does not want and that the model did not ask for.
    fn is_unneeded(&self, set: &ActiveSetBuilder<'_>, chosen: &Chosen) -> bool {
        self.is_kept(chosen)
            && !self.wanted.contains(&chosen.slot)
            && !chosen.newly_promoted
            && !set.is_searched(chosen.slot)
    }

    /// Returns true for an unneeded tool that was not called lately.
    fn is_left(&self, set: &ActiveSetBuilder<'_>, chosen: &Chosen) -> bool {
        self.is_unneeded(set, chosen) && !self.called_lately(chosen.slot)
    }

    /// Returns true for a kept tool that the conversation no longer needs, so that it may be evicted for lack of
    /// tokens.
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

    /// Returns the cost of removing tools, for which the model need not search for the tool that comes.
    fn cost(&self, set: &ActiveSetBuilder<'_>, victims: &[u32]) -> CacheCost {
        self.weighed(self.dropped(set, victims))
    }

    fn weighed(&self, dropped: Dropped) -> CacheCost {
        self.query.options.prices.rates.dropping(&dropped).into()
    }

    /// Returns what goes with these tools. What comes in their place is taken for as long as they are.
    fn dropped(&self, set: &ActiveSetBuilder<'_>, victims: &[u32]) -> Dropped {
        let active = set.tools();
        let first = active.iter().position(|chosen| victims.contains(&chosen.slot)).unwrap_or(0);
        let after = active[first..].iter().filter(|chosen| !victims.contains(&chosen.slot));
        let after: u64 = after.map(|chosen| set.tokens_of(chosen.slot)).sum();
        let options = &self.query.options;
        let prompt = set.used() + self.history();
        let beside = u64::from(options.system_tokens) + u64::from(options.beside_tokens);
        let whole = prompt + beside + self.listed();
        Dropped {
            tokens: victims.iter().map(|slot| set.tokens_of(*slot)).sum(),
            behind: after + self.history(),
            searched: prompt,
            prompt: whole,
            left: whole,
            requests: options.prices.requests.into(),
        }
    }

    /// Returns about how many tokens the search lists: those of all tools' names or summaries, up to the most that it may.
    fn listed(&self) -> u64 {
        let options = &self.query.options;
        let most = u64::from(options.listing_tokens);
        let tokens = |tool: &Tool| {
            if options.lists_summaries {
                u64::from(tool.summary_tokens)
            } else {
                tool.model_name.len() as u64 / BYTES_A_TOKEN
            }
        };
        let mut listed = 0;
        for tool in &self.snapshot.tools {
            if listed >= most {
                return most;
            }
            listed += tokens(tool);
        }
        listed.min(most)
    }

    fn history(&self) -> u64 {
        self.query.options.history_tokens.map_or(0, u64::from)
    }
}

/// Returns the number of these tools that the model did not search for.
fn routed(set: &ActiveSetBuilder<'_>, slots: &[u32]) -> usize {
    slots.iter().filter(|slot| !set.is_searched(**slot)).count()
}

fn is_enough(set: &ActiveSetBuilder<'_>, over: Excess, victims: &[u32]) -> bool {
    victims.len() >= over.tools && routed(set, victims) >= over.routed
}

fn slot(chosen: &Chosen) -> u32 {
    chosen.slot
}

#[cfg(test)]
mod tests;
