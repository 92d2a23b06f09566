//! How each tool stands under an agent's state: open, locked by a precondition, or hidden for want of a
//! scope. Every surface asks here, so that they agree.

use fixedbitset::FixedBitSet;

use crate::shard::snapshot::Snapshot;
use crate::state::AgentState;

/// How a tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// May be shown and called.
    Open,
    /// Known to the caller, but a precondition does not hold.
    Locked,
    /// A scope is missing: to this caller the tool does not exist.
    Hidden,
}

/// The standing of all tools of a snapshot under one state.
#[derive(Debug)]
pub struct Standings {
    by_group: Vec<Standing>,
}

/// Tokens of the tools that are not hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisibleTokens {
    /// Their definitions.
    pub schemas: u64,
    /// Their lines of the summary pool.
    pub pool: u64,
}

impl Standings {
    /// Evaluates each distinct requirement once.
    #[must_use]
    pub fn of(snapshot: &Snapshot, state: &AgentState) -> Self {
        let standing = |group: &crate::shard::requirements::Group| {
            if !group.requirement.lacks_no_scope(state) {
                Standing::Hidden
            } else if group.requirement.holds(state) {
                Standing::Open
            } else {
                Standing::Locked
            }
        };
        Self { by_group: snapshot.groups.iter().map(standing).collect() }
    }

    /// The standing of the tool at `slot`.
    #[must_use]
    pub fn tool(&self, snapshot: &Snapshot, slot: u32) -> Standing {
        self.by_group[snapshot.tool(slot).group as usize]
    }

    /// The open tools; `None` when all are, so that searches need no bitmap.
    #[must_use]
    pub fn open(&self, snapshot: &Snapshot) -> Option<FixedBitSet> {
        if self.by_group.iter().all(|standing| *standing == Standing::Open) {
            return None;
        }
        let mut open = FixedBitSet::with_capacity(snapshot.tools.len());
        for (group, standing) in snapshot.groups.iter().zip(&self.by_group) {
            if *standing == Standing::Open {
                open.extend(group.slots.iter().map(|slot| *slot as usize));
            }
        }
        Some(open)
    }

    /// How many tools stand so.
    #[must_use]
    pub fn count(&self, snapshot: &Snapshot, standing: Standing) -> usize {
        let groups = snapshot.groups.iter().zip(&self.by_group);
        groups.filter(|(_, of)| **of == standing).map(|(group, _)| group.slots.len()).sum()
    }

    /// Tokens of the tools that are not hidden.
    #[must_use]
    pub fn visible_tokens(&self, snapshot: &Snapshot) -> VisibleTokens {
        let groups = snapshot.groups.iter().zip(&self.by_group);
        let visible = groups.filter(|(_, standing)| **standing != Standing::Hidden);
        visible.fold(VisibleTokens { schemas: 0, pool: 0 }, |sum, (group, _)| VisibleTokens {
            schemas: sum.schemas + group.schema_tokens,
            pool: sum.pool + group.summary_tokens,
        })
    }
}
