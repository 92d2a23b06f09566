//! Number of tools that a caller finds only by searching.

use std::collections::HashSet;

use crate::gate::handle::ShownTool;
use crate::gate::visibility::Visibilities;
use crate::shard::snapshot::Snapshot;

/// Returns the number of open tools that are neither loaded by the catalog, always or as pinned ones, nor in the active
/// set `shown`. Tools that a search has just found count: the search found them.
pub(super) fn count(
    snapshot: &Snapshot,
    visibilities: &Visibilities,
    shown: &[ShownTool],
) -> usize {
    let open = visibilities.open(snapshot);
    let is_open = |slot: &u32| open.as_ref().is_none_or(|set| set.contains(*slot as usize));
    let loaded = shown.iter().filter_map(|tool| snapshot.names.key(&tool.id));
    let loaded = loaded.chain(snapshot.always_load.iter().chain(&snapshot.pinned).copied());
    let loaded: HashSet<u32> = loaded.filter(is_open).collect();
    let open = open.as_ref().map_or(snapshot.tools.len(), |set| set.count_ones(..));
    open.saturating_sub(loaded.len())
}
