//! Active set of a turn while it is built. The builder alone owns its tools, their places and its budgets. Other
//! modules decide which tools are wanted and which are evicted for them.

use std::collections::{HashMap, HashSet};

use crate::gate::handle::TOOLS_MAX;
use crate::router::answers::answer_size::AnswerSize;
use crate::router::ranking::rank::FoundBy;
use crate::router::selection::choose::Chosen;
use crate::shard::snapshot::Snapshot;

/// Bounds of an active set.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum number of tools.
    pub tools: usize,
    /// Maximum number of tools that the model did not search for.
    pub routed: usize,
    /// Maximum tokens of all tools; `None` for no bound.
    pub tokens: Option<u32>,
    /// Maximum tokens of the tools that join; `None` for no bound.
    pub new_tokens: Option<u32>,
    /// Bytes of one message that definitions may take.
    pub size: AnswerSize,
}

/// Amounts to free before a tool has room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Excess {
    /// Tokens over the bound.
    pub tokens: u64,
    /// Tools over the bound.
    pub tools: usize,
    /// Tools over the bound on tools that the model did not search for.
    pub routed: usize,
}

impl Excess {
    /// Returns true if nothing must be freed.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Builder of an active set.
pub struct ActiveSetBuilder<'a> {
    snapshot: &'a Snapshot,
    bounds: Bounds,
    /// Tools in their places.
    tools: Vec<Chosen>,
    /// Tokens of each tool in `tools`, by slot.
    tokens: HashMap<u32, u32>,
    used: u64,
    new_tokens_left: Option<u32>,
    removed: Vec<u32>,
    /// Tools that the model searched for lately, in the set or not.
    searched: HashSet<u32>,
}

impl<'a> ActiveSetBuilder<'a> {
    /// Creates an empty set.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, bounds: Bounds) -> Self {
        Self {
            snapshot,
            bounds,
            tools: Vec::new(),
            tokens: HashMap::new(),
            used: 0,
            new_tokens_left: bounds.new_tokens,
            removed: Vec::new(),
            searched: HashSet::new(),
        }
    }

    /// Returns the tools in their places.
    #[must_use]
    pub fn tools(&self) -> &[Chosen] {
        &self.tools
    }

    /// Returns the bounds.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Raises the bounds on the number of tools to [`TOOLS_MAX`], for turns in which nothing is deferred.
    pub fn unbind_tools(&mut self) {
        self.bounds.tools = TOOLS_MAX;
        self.bounds.routed = TOOLS_MAX;
    }

    /// Returns true if the set differs from the previous turn's, so that the cache is lost anyway.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        !self.removed.is_empty() || self.tools.iter().any(|one| one.newly_promoted)
    }

    /// Returns true if the set has the tool, as a definition or a signature.
    #[must_use]
    pub fn contains(&self, slot: u32) -> bool {
        self.tokens.contains_key(&slot)
    }

    /// Returns true if the set has the tool as a signature.
    #[must_use]
    pub fn is_brief(&self, slot: u32) -> bool {
        self.contains(slot) && self.tools.iter().any(|one| one.slot == slot && one.is_brief)
    }

    /// Returns the tokens of a tool in the set; 0 for other tools.
    #[must_use]
    pub fn tokens_of(&self, slot: u32) -> u64 {
        self.tokens.get(&slot).copied().unwrap_or(0).into()
    }

    /// Returns the tokens of all tools.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Notes a tool that the model searched for. It does not count against [`Bounds::routed`].
    pub fn note_searched(&mut self, slot: u32) {
        self.searched.insert(slot);
    }

    /// Returns true if the model searched for the tool lately.
    #[must_use]
    pub fn is_searched(&self, slot: u32) -> bool {
        self.searched.contains(&slot)
    }

    /// Adds a tool of the previous turn at the next place. It does not count against the bound on new tokens.
    pub fn keep(&mut self, tool: Chosen) {
        if !self.contains(tool.slot) {
            self.push(tool);
        }
    }

    /// Returns true if the bound on new tokens allows the tool in this form.
    #[must_use]
    pub fn affords(&self, slot: u32, is_brief: bool) -> bool {
        let cost = self.cost(slot, is_brief);
        self.new_tokens_left.is_none_or(|left| cost <= left)
    }

    /// Returns the number of these tools that are new and, taken in this order, within the bound on new tokens.
    #[must_use]
    pub fn affordable(&self, slots: impl Iterator<Item = u32>) -> usize {
        let mut left = self.new_tokens_left.map_or(u64::MAX, u64::from);
        let is_affordable = |slot: &u32| {
            let rest = left.checked_sub(self.cost(*slot, false).into());
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        slots.filter(|slot| !self.contains(*slot)).filter(is_affordable).count()
    }

    /// Returns true if the answer has enough bytes left for the tool in this form.
    #[must_use]
    pub fn has_bytes(&self, slot: u32, is_brief: bool) -> bool {
        self.bounds.size.fits(self.snapshot.tool(slot), is_brief)
    }

    /// Returns the amounts to free before the tool has room in this form.
    #[must_use]
    pub fn excess(&self, slot: u32, is_brief: bool) -> Excess {
        let is_new = !self.contains(slot);
        let tools = self.tools.len() + usize::from(is_new);
        let routed = self.routed() + usize::from(is_new && !self.is_searched(slot));
        let tokens = self.used + u64::from(self.cost(slot, is_brief));
        self.over(tokens, tools, routed)
    }

    /// Returns the amounts by which the set exceeds its bounds.
    #[must_use]
    pub fn overrun(&self) -> Excess {
        self.overrun_with(0)
    }

    /// Returns the amounts by which the set would exceed its bounds with `joining` more tools of the turn.
    #[must_use]
    pub fn overrun_with(&self, joining: usize) -> Excess {
        self.over(self.used, self.tools.len() + joining, self.routed() + joining)
    }

    /// Adds a tool at the end. A tool that the set has in another form moves. Returns false and changes nothing if a
    /// bound does not allow the tool. An always-loaded tool is limited only by [`TOOLS_MAX`] and the bytes of the
    /// answer.
    pub fn add(&mut self, tool: Chosen) -> bool {
        let fits = self.affords(tool.slot, tool.is_brief)
            && self.excess(tool.slot, tool.is_brief).is_none();
        let is_always_loaded = tool.found_by == FoundBy::AlwaysLoad;
        let has_place = self.tools.len() < TOOLS_MAX && self.has_bytes(tool.slot, tool.is_brief);
        let is_added = (fits || is_always_loaded) && has_place;
        if is_added {
            let cost = self.cost(tool.slot, tool.is_brief);
            self.new_tokens_left = self.new_tokens_left.map(|left| left.saturating_sub(cost));
            self.take_out(tool.slot);
            self.push(tool);
        }
        is_added
    }

    /// Removes tools. They are reported as removed unless they come back.
    pub fn remove(&mut self, slots: &[u32]) {
        for slot in slots {
            self.take_out(*slot);
            self.removed.push(*slot);
        }
    }

    /// Notes a tool of the previous turn that may no longer be shown.
    pub fn note_removed(&mut self, slot: u32) {
        self.removed.push(slot);
    }

    /// Returns the tools in their places, and the removed tools.
    #[must_use]
    pub fn finish(self) -> (Vec<Chosen>, Vec<u32>) {
        let tokens = self.tokens;
        let mut removed = self.removed;
        removed.retain(|slot| !tokens.contains_key(slot));
        (self.tools, removed)
    }

    /// Returns the tokens of a tool in the form that the model sees.
    fn cost(&self, slot: u32, is_brief: bool) -> u32 {
        let tool = self.snapshot.tool(slot);
        if is_brief { tool.signature_tokens() } else { tool.schema_tokens }
    }

    fn routed(&self) -> usize {
        self.tools.iter().filter(|one| !self.is_searched(one.slot)).count()
    }

    fn over(&self, tokens: u64, tools: usize, routed: usize) -> Excess {
        let most = self.bounds.tokens.map_or(u64::MAX, u64::from);
        Excess {
            tokens: tokens.saturating_sub(most),
            tools: tools.saturating_sub(self.bounds.tools.min(TOOLS_MAX)),
            routed: routed.saturating_sub(self.bounds.routed),
        }
    }

    fn push(&mut self, tool: Chosen) {
        let cost = self.cost(tool.slot, tool.is_brief);
        self.used += u64::from(cost);
        self.bounds.size.take(self.snapshot.tool(tool.slot), tool.is_brief);
        self.tokens.insert(tool.slot, cost);
        self.tools.push(tool);
    }

    fn take_out(&mut self, slot: u32) {
        if let Some(cost) = self.tokens.remove(&slot) {
            self.used -= u64::from(cost);
            for gone in self.tools.extract_if(.., |one| one.slot == slot) {
                self.bounds.size.give_back(self.snapshot.tool(slot), gone.is_brief);
            }
        }
    }
}

#[cfg(test)]
mod tests;
