//! Bitmap of the tools that a search may find: open tools within the request's filters.

use std::collections::HashSet;

use fixedbitset::FixedBitSet;

use crate::gate::visibility::{Visibilities, Visibility};
use crate::router::query::Options;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;

/// Tools that this call may choose from.
#[derive(Debug)]
pub struct Allowed {
    /// Visibility of each tool.
    pub visibilities: Visibilities,
    /// Open tools that pass the request's filters; `None` when all tools do.
    pub slots: Option<FixedBitSet>,
    excluded: HashSet<u32>,
    /// Names to exclude that match no tool this caller may know of.
    pub unknown_exclusions: Vec<String>,
    servers: HashSet<ServerName>,
}

impl Allowed {
    /// Combines the visibilities of the tools with the request's filters.
    ///
    /// # Errors
    /// [`Error::ServerNotFound`] for a server filter that would silently match nothing. A filter for one of the
    /// `pending` servers is no error, although the server has no tools yet.
    pub fn new(
        snapshot: &Snapshot,
        visibilities: Visibilities,
        options: &Options,
        pending: &[String],
    ) -> Result<Self, Error> {
        // A server whose tools are all hidden does not exist for this caller.
        let is_hidden = |slot: &u32| visibilities.tool(snapshot, *slot) == Visibility::Hidden;
        let is_missing = |name: &&ServerName| {
            let has_none =
                snapshot.servers.get(*name).is_none_or(|slots| slots.iter().all(is_hidden));
            has_none && !pending.iter().any(|known| known == name.as_str())
        };
        let missing = options.servers.iter().find(is_missing);
        if let Some(name) = missing {
            return Err(Error::ServerNotFound(name.as_str().to_owned()));
        }
        let mut excluded = HashSet::new();
        let mut unknown_exclusions = Vec::new();
        for name in &options.excluded {
            let slots = named(snapshot, name);
            if slots.iter().all(is_hidden) {
                unknown_exclusions.push(name.clone());
            }
            excluded.extend(slots);
        }
        let mut slots = visibilities.open(snapshot);
        if !options.servers.is_empty() {
            let wanted = of_servers(snapshot, &options.servers);
            slots = Some(slots.map_or(wanted.clone(), |open| &open & &wanted));
        }
        if !excluded.is_empty() {
            let set = slots.get_or_insert_with(|| all(snapshot));
            excluded.iter().for_each(|slot| set.set(*slot as usize, false));
        }
        let servers = options.servers.iter().cloned().collect();
        Ok(Self { visibilities, slots, excluded, unknown_exclusions, servers })
    }

    /// Returns the number of tools that may be chosen.
    #[must_use]
    pub fn count(&self, snapshot: &Snapshot) -> usize {
        self.slots.as_ref().map_or(snapshot.tools.len(), |set| set.count_ones(..))
    }

    /// Returns true if the tool may be chosen.
    #[must_use]
    pub fn contains(&self, slot: u32) -> bool {
        self.slots.as_ref().is_none_or(|set| set.contains(slot as usize))
    }

    /// Returns true if the request excludes the tool, by name or by its server.
    #[must_use]
    pub fn excludes(&self, snapshot: &Snapshot, slot: u32) -> bool {
        let of_other_server = || !self.servers.contains(&snapshot.tool(slot).id.server);
        self.excluded.contains(&slot) || (!self.servers.is_empty() && of_other_server())
    }

    /// Returns the tools that would be allowed if their preconditions held.
    #[must_use]
    pub fn locked(&self, snapshot: &Snapshot) -> FixedBitSet {
        let mut locked = FixedBitSet::with_capacity(snapshot.tools.len());
        for group in &snapshot.requirements.groups {
            let of_group = group.slots.iter().copied();
            let is_locked =
                |slot: &u32| self.visibilities.tool(snapshot, *slot) == Visibility::Locked;
            let asked_for = |slot: &u32| !self.excludes(snapshot, *slot);
            locked.extend(of_group.take_while(is_locked).filter(asked_for).map(|s| s as usize));
        }
        locked
    }
}

/// Returns the tool of this model-facing name or `server/name`, or else all tools of this MCP name.
fn named(snapshot: &Snapshot, name: &str) -> Vec<u32> {
    let one = snapshot.names.requested(name, &snapshot.tools);
    one.map_or_else(|| snapshot.names.mcp_name(name).to_vec(), |slot| vec![slot])
}

fn of_servers(snapshot: &Snapshot, names: &[ServerName]) -> FixedBitSet {
    let mut wanted = FixedBitSet::with_capacity(snapshot.tools.len());
    for slots in names.iter().filter_map(|name| snapshot.servers.get(name)) {
        wanted.extend(slots.iter().map(|slot| *slot as usize));
    }
    wanted
}

fn all(snapshot: &Snapshot) -> FixedBitSet {
    let mut set = FixedBitSet::with_capacity(snapshot.tools.len());
    set.insert_range(..);
    set
}
