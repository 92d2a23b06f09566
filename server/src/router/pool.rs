//! The summary pool, phase 1: whole, or what changed since a revision. Its order only ever appends.

use crate::gate::standing::{Standing, Standings};
use crate::shard::snapshot::Snapshot;
use crate::store::Revision;

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
    }
}

fn removed_after(snapshot: &Snapshot, from: Revision) -> Vec<String> {
    let newer = snapshot.removed.iter().filter(|tool| tool.revision > from);
    newer.map(|tool| tool.model_name.clone()).collect()
}
