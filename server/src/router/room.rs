//! Room in the active set: what its definitions may cost together, and which kept tools go for new ones.

use std::collections::{HashMap, HashSet};

use super::choose::Chosen;
use super::continuity::{CacheCost, Change, Conversation, Prompt};
use super::query::RouteQuery;
use super::rank::FoundBy;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;

/// The budget of a turn, and what may go for it.
pub struct Room<'a> {
    snapshot: &'a Snapshot,
    conversation: Conversation<'a>,
    query: &'a RouteQuery,
    /// Tools that stay whatever their overlap: pinned, always loaded, named by an intent.
    needed: HashSet<u32>,
    /// False when overlaps could not be had: no tool goes on a guess.
    may_evict: bool,
    /// Tokens of the tools of the set so far.
    tokens: HashMap<u32, u64>,
    used: u64,
    /// What happened.
    pub change: Change,
}

impl<'a> Room<'a> {
    /// An empty set's room.
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        query: &'a RouteQuery,
        needed: HashSet<u32>,
        may_evict: bool,
    ) -> Self {
        let conversation = Conversation::new(&query.state, query.options.threshold);
        let change = Change::default();
        let tokens = HashMap::new();
        Self { snapshot, conversation, query, needed, may_evict, tokens, used: 0, change }
    }

    /// Tools that stay whatever their overlap.
    pub fn need(&mut self, slots: impl Iterator<Item = u32>) {
        self.needed.extend(slots);
    }

    /// Counts a tool that has joined the set.
    pub fn fill(&mut self, slot: u32, tokens: u32) {
        self.used += u64::from(tokens);
        self.tokens.insert(slot, tokens.into());
    }

    /// Counts a tool no more.
    pub fn free(&mut self, slot: u32) {
        self.used -= self.tokens.remove(&slot).unwrap_or(0);
    }

    /// Whether there is room for a tool of so many tokens; kept tools go for it where that pays.
    pub fn make(&mut self, tokens: u32, active: &mut Vec<Chosen>) -> bool {
        let over = self.over(tokens.into());
        if over == 0 {
            return true;
        }
        let victims = self.victims(over, active);
        let freed: u64 = victims.iter().map(|slot| self.tokens(*slot)).sum();
        if freed < over {
            return false;
        }
        let cost = self.cost(&victims, active);
        self.change.cost.lost += cost.lost;
        self.change.cost.saved += cost.saved;
        let options = &self.query.options;
        if options.history_tokens.is_some() && !options.ignore_cache_cost && !cost.pays() {
            self.change.kept_for_cache = true;
            return false;
        }
        self.evict(&victims, active);
        true
    }

    /// Takes out kept tools until the set is within its budget, or none is left that may go.
    pub fn trim(&mut self, active: &mut Vec<Chosen>) {
        let over = self.over(0);
        if over > 0 {
            let victims = self.victims(over, active);
            self.evict(&victims, active);
        }
    }

    /// What happened, with the kept tools that may go next time.
    #[must_use]
    pub fn finish(mut self, active: &[Chosen]) -> Change {
        let evictable = active.iter().filter(|chosen| self.may_go(chosen));
        self.change.evictable = evictable.map(|chosen| chosen.slot).collect();
        self.change
    }

    /// Tokens by which the set is over its budget with `more`.
    fn over(&self, more: u64) -> u64 {
        let budget = self.query.options.active_token_budget.map_or(u64::MAX, u64::from);
        (self.used + more).saturating_sub(budget)
    }

    /// Tools that may go, the least overlap first, until they cost `needed` tokens.
    fn victims(&self, needed: u64, active: &[Chosen]) -> Vec<u32> {
        let mut may_go: Vec<&Chosen> = active.iter().filter(|chosen| self.may_go(chosen)).collect();
        may_go.sort_by(|a, b| a.overlap.total_cmp(&b.overlap));
        let mut freed = 0;
        let until_enough = may_go.into_iter().take_while(|chosen| {
            let enough = freed >= needed;
            freed += self.tokens(chosen.slot);
            !enough
        });
        until_enough.map(|chosen| chosen.slot).collect()
    }

    fn may_go(&self, chosen: &Chosen) -> bool {
        let is_kept = chosen.found_by == FoundBy::Kept && !chosen.newly_promoted;
        let tool = self.tool(chosen.slot);
        let names = [&*tool.model_name, tool.id.name.as_str()];
        self.may_evict
            && is_kept
            && !self.needed.contains(&chosen.slot)
            && self.conversation.has_left(names, chosen.overlap)
    }

    fn cost(&self, victims: &[u32], active: &[Chosen]) -> CacheCost {
        let first = active.iter().position(|chosen| victims.contains(&chosen.slot)).unwrap_or(0);
        let after = active[first..].iter().filter(|chosen| !victims.contains(&chosen.slot));
        let after = after.map(|chosen| self.tokens(chosen.slot)).sum();
        let gone = victims.iter().map(|slot| self.tokens(*slot)).sum();
        let history = self.query.options.history_tokens.map_or(0, u64::from);
        CacheCost::new(Prompt { tools: self.used, history }, gone, after)
    }

    fn evict(&mut self, victims: &[u32], active: &mut Vec<Chosen>) {
        active.retain(|chosen| !victims.contains(&chosen.slot));
        victims.iter().for_each(|slot| self.free(*slot));
        self.change.removed.extend(victims);
    }

    fn tool(&self, slot: u32) -> &Tool {
        self.snapshot.tool(slot)
    }

    fn tokens(&self, slot: u32) -> u64 {
        self.tokens.get(&slot).copied().unwrap_or(0)
    }
}
