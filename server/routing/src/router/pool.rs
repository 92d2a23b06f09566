//! The summary pool, phase 1: whole, or what changed since a revision. Its order only ever appends.

use crate::catalog::check::pool_line;
use crate::gate::standing::{Standing, Standings};
use crate::shard::snapshot::Snapshot;
use toolgate_store::Revision;

/// Headings of a change in a prompt.
const REMOVED: &str = "These tools are gone:\n";
const ADDED: &str = "These tools are new, or described anew:\n";

/// A change of the summary pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDelta {
    /// The revision after it.
    pub revision: Revision,
    /// True when `added` is the whole pool.
    pub full: bool,
    /// Slots to append, in this order.
    pub added: Vec<u32>,
    /// Model-facing names to remove first.
    pub removed: Vec<String>,
    /// Tokens of the whole pool after it.
    pub pool_tokens: u64,
    /// True for names without summaries.
    pub names_only: bool,
    /// The same as text for a prompt; empty unless it was asked for.
    pub rendered: String,
}

impl PoolDelta {
    /// True when nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.full && self.added.is_empty() && self.removed.is_empty()
    }
}

/// What changed since `since`, of the tools that this caller may see; the whole pool for `None`, for a
/// revision that is too old to tell, and for one that was never reached.
#[must_use]
pub fn delta(snapshot: &Snapshot, standings: &Standings, since: Option<Revision>) -> PoolDelta {
    let since = since.filter(|r| (snapshot.pool_floor..=snapshot.revision).contains(r));
    let from = since.unwrap_or(0);
    let visible = |slot: &u32| standings.tool(snapshot, *slot) != Standing::Hidden;
    // Slots are in the pool's order, so that what is newer is all at the end.
    let first = snapshot.tools.partition_point(|tool| tool.summary_revision <= from);
    let slot = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    let newer = slot(first)..slot(snapshot.tools.len());
    PoolDelta {
        revision: snapshot.revision,
        full: since.is_none(),
        added: newer.filter(visible).collect(),
        removed: since.map_or_else(Vec::new, |from| removed_after(snapshot, from)),
        pool_tokens: standings.visible_tokens(snapshot).pool,
        names_only: false,
        rendered: String::new(),
    }
}

impl PoolDelta {
    /// The same with names only.
    #[must_use]
    pub fn with_names_only(self, snapshot: &Snapshot, standings: &Standings) -> Self {
        Self { names_only: true, pool_tokens: name_tokens(snapshot, standings), ..self }
    }

    /// The same with its text: a whole pool is one line a tool, a change is a block to be appended.
    #[must_use]
    pub fn with_text(self, snapshot: &Snapshot) -> Self {
        let line = |slot: &u32| {
            let tool = snapshot.tool(*slot);
            if self.names_only {
                format!("{}\n", tool.model_name)
            } else {
                pool_line(&tool.model_name, &tool.summary)
            }
        };
        let mut rendered = String::new();
        if !self.removed.is_empty() {
            rendered.push_str(REMOVED);
            self.removed.iter().for_each(|name| rendered.extend([name, "\n"]));
        }
        if !self.full && !self.added.is_empty() {
            rendered.push_str(ADDED);
        }
        rendered.extend(self.added.iter().map(line));
        Self { rendered, ..self }
    }
}

/// Tokens of the names of all tools that this caller may see, one a line.
#[must_use]
pub fn name_tokens(snapshot: &Snapshot, standings: &Standings) -> u64 {
    let visible = |slot: &u32| standings.tool(snapshot, *slot) != Standing::Hidden;
    let slots = (0u32..).take(snapshot.tools.len()).filter(visible);
    slots.map(|slot| u64::from(snapshot.tool(slot).name_tokens())).sum()
}

fn removed_after(snapshot: &Snapshot, from: Revision) -> Vec<String> {
    let newer = snapshot.removed.iter().filter(|tool| tool.revision > from);
    newer.map(|tool| tool.model_name.clone()).collect()
}
