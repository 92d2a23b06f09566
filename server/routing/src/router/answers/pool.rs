//! Summary pool (phase 1): the whole pool, or the changes since a revision. New tools are always appended.

use crate::catalog::check::pool_line;
use crate::gate::visibility::{Visibilities, Visibility};
use crate::shard::snapshot::Snapshot;
use toolgate_store::Revision;

/// Headings of a change in a prompt.
const REMOVED: &str = "These tools are gone:\n";
const ADDED: &str = "These tools are new, or described anew:\n";

/// Change of the summary pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDelta {
    /// Revision after the change.
    pub revision: Revision,
    /// True if `added` is the whole pool.
    pub full: bool,
    /// Slots to append, in this order.
    pub added: Vec<u32>,
    /// Model-facing names to remove before appending.
    pub removed: Vec<String>,
    /// Tokens of the whole pool after the change.
    pub pool_tokens: u64,
    /// True if the pool lists names without summaries.
    pub names_only: bool,
    /// Change as text for a prompt; empty unless it was requested.
    pub rendered: String,
}

impl PoolDelta {
    /// Returns true if nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.full && self.added.is_empty() && self.removed.is_empty()
    }
}

/// Returns the changes since `since` among the tools that this caller may see. Returns the whole pool for `None`, for a
/// revision that is too old to compare, and for a revision that was never reached.
#[must_use]
pub fn delta(
    snapshot: &Snapshot,
    visibilities: &Visibilities,
    since: Option<Revision>,
) -> PoolDelta {
    let since = since.filter(|r| (snapshot.pool_floor..=snapshot.revision).contains(r));
    let from = since.unwrap_or(0);
    let visible = |slot: &u32| visibilities.tool(snapshot, *slot) != Visibility::Hidden;
    // Slots are in the pool's order, so newer tools are all at the end.
    let first = snapshot.tools.partition_point(|tool| tool.summary_revision <= from);
    let slot = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    let newer = slot(first)..slot(snapshot.tools.len());
    PoolDelta {
        revision: snapshot.revision,
        full: since.is_none(),
        added: newer.filter(visible).collect(),
        removed: since.map_or_else(Vec::new, |from| removed_after(snapshot, from)),
        pool_tokens: visibilities.visible_tokens(snapshot).pool,
        names_only: false,
        rendered: String::new(),
    }
}

impl PoolDelta {
    /// Returns the same change with names only.
    #[must_use]
    pub fn with_names_only(self, snapshot: &Snapshot, visibilities: &Visibilities) -> Self {
        Self { names_only: true, pool_tokens: name_tokens(snapshot, visibilities), ..self }
    }

    /// Returns the same change with its text. A whole pool has one line per tool; a change is a block to append to the
    /// prompt.
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

/// Returns the tokens of the names of all tools that this caller may see, one name per line.
#[must_use]
pub fn name_tokens(snapshot: &Snapshot, visibilities: &Visibilities) -> u64 {
    let visible = |slot: &u32| visibilities.tool(snapshot, *slot) != Visibility::Hidden;
    let slots = (0u32..).take(snapshot.tools.len()).filter(visible);
    slots.map(|slot| u64::from(snapshot.tool(slot).name_tokens())).sum()
}

fn removed_after(snapshot: &Snapshot, from: Revision) -> Vec<String> {
    let newer = snapshot.removed.iter().filter(|tool| tool.revision > from);
    newer.map(|tool| tool.model_name.clone()).collect()
}
