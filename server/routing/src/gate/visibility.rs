//! Visibility of each tool under an agent's state: allowed, locked by a precondition, or hidden by a missing scope or by the
//! policy. Every API uses this module, so that all of them agree.

use fixedbitset::FixedBitSet;

use crate::shard::requirements::{Demand, Group, Need, Requirements};
use crate::shard::snapshot::Snapshot;
use toolgate_core::condition::{Fault, Fuel};
use toolgate_core::state::AgentState;

/// Visibility of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Tool that may be shown and called.
    Allowed,
    /// Tool that the caller may know of, but whose precondition does not hold or can't be evaluated.
    Locked,
    /// Tool that does not exist for this caller, because a scope is missing or the policy denies it.
    Hidden,
}

/// Visibilities of all tools of a snapshot under one state.
#[derive(Debug)]
pub struct Visibilities {
    by_group: Vec<Visibility>,
    granted: FixedBitSet,
    holding: FixedBitSet,
    /// Conditions that can't be evaluated, by index.
    faults: Vec<(u32, Fault)>,
}

/// Token counts of the tools that are not hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisibleTokens {
    /// Tokens of their definitions.
    pub schemas: u64,
    /// Tokens of their lines of the summary pool.
    pub pool: u64,
}

impl Visibilities {
    /// Evaluates each distinct scope and condition of the snapshot once.
    #[must_use]
    pub fn of(snapshot: &Snapshot, state: &AgentState) -> Self {
        Self::under(&snapshot.requirements, state)
    }

    /// Evaluates requirements without a snapshot.
    #[must_use]
    pub fn under(requirements: &Requirements, state: &AgentState) -> Self {
        let granted = requirements.scopes.iter().enumerate();
        let granted = granted.filter(|(_, scope)| state.scopes.contains(&***scope));
        let mut visibilities = Self {
            by_group: Vec::with_capacity(requirements.groups.len()),
            granted: granted.map(|(place, _)| place).collect(),
            holding: FixedBitSet::with_capacity(requirements.conditions.len()),
            faults: Vec::new(),
        };
        let mut fuel = Fuel::default();
        for (place, condition) in (0u32..).zip(&requirements.conditions) {
            match condition.holds(state, &mut fuel) {
                Ok(holds) => visibilities.holding.set(place as usize, holds),
                Err(fault) => visibilities.faults.push((place, fault)),
            }
        }
        for group in &requirements.groups {
            let visibility = visibilities.of_group(group);
            visibilities.by_group.push(visibility);
        }
        visibilities
    }

    /// Returns the visibility of the tool at `slot`.
    #[must_use]
    pub fn tool(&self, snapshot: &Snapshot, slot: u32) -> Visibility {
        self.group(snapshot.tool(slot).group)
    }

    /// Returns the visibility of a group's tools.
    #[must_use]
    pub fn group(&self, group: u32) -> Visibility {
        self.by_group[group as usize]
    }

    /// Returns the set of open tools, or `None` if all are open, so that searches need no bitmap.
    #[must_use]
    pub fn open(&self, snapshot: &Snapshot) -> Option<FixedBitSet> {
        if self.by_group.iter().all(|visibility| *visibility == Visibility::Allowed) {
            return None;
        }
        let mut open = FixedBitSet::with_capacity(snapshot.tools.len());
        for (group, visibility) in snapshot.requirements.groups.iter().zip(&self.by_group) {
            if *visibility == Visibility::Allowed {
                open.extend(group.slots.iter().map(|slot| *slot as usize));
            }
        }
        Some(open)
    }

    /// Returns the number of tools with this visibility.
    #[must_use]
    pub fn count(&self, snapshot: &Snapshot, visibility: Visibility) -> usize {
        let groups = snapshot.requirements.groups.iter().zip(&self.by_group);
        groups.filter(|(_, of)| **of == visibility).map(|(group, _)| group.slots.len()).sum()
    }

    /// Returns the token counts of the tools that are not hidden.
    #[must_use]
    pub fn visible_tokens(&self, snapshot: &Snapshot) -> VisibleTokens {
        let groups = snapshot.requirements.groups.iter().zip(&self.by_group);
        let visible = groups.filter(|(_, visibility)| **visibility != Visibility::Hidden);
        visible.fold(VisibleTokens { schemas: 0, pool: 0 }, |sum, (group, _)| VisibleTokens {
            schemas: sum.schemas + group.schema_tokens,
            pool: sum.pool + group.summary_tokens,
        })
    }

    /// Returns true if the policy denies the tool at `slot` to every caller.
    #[must_use]
    pub fn is_denied(&self, snapshot: &Snapshot, slot: u32) -> bool {
        self.denies(snapshot, snapshot.tool(slot).group)
    }

    /// Returns true if the policy denies a group's tools to every caller.
    #[must_use]
    pub fn denies(&self, snapshot: &Snapshot, group: u32) -> bool {
        let group = &snapshot.requirements.groups[group as usize];
        group.needs.iter().any(|need| need.demand == Demand::Denied)
    }

    /// Returns the requirements that would unlock the tool at `slot`. All of them are needed. Empty if it is open, or
    /// if nothing would unlock it.
    #[must_use]
    pub fn unlock(&self, snapshot: &Snapshot, slot: u32) -> Vec<String> {
        self.unlock_of(&snapshot.requirements, snapshot.tool(slot).group)
    }

    /// Returns the requirements that would unlock a group's tools. See [`Self::unlock`].
    #[must_use]
    pub fn unlock_of(&self, requirements: &Requirements, group: u32) -> Vec<String> {
        let needs = &requirements.groups[group as usize].needs;
        let mut unlock = Vec::new();
        for need in needs.iter().filter(|need| !self.is_met(need)) {
            let text = match need.demand {
                Demand::Denied => return Vec::new(),
                Demand::Scope(place) => format!("scope {:?}", requirements.scopes[place as usize]),
                Demand::Condition(place) => self.condition(requirements, place),
            };
            if !unlock.contains(&text) {
                unlock.push(text);
            }
        }
        unlock
    }

    /// Returns the first unmet need of a group, which decides against its tools. Denials come before scopes, and scopes
    /// before conditions.
    #[must_use]
    pub fn decider(&self, group: &Group) -> Option<Need> {
        let unmet = |of: fn(&Demand) -> bool| {
            group.needs.iter().find(|need| of(&need.demand) && !self.is_met(need)).copied()
        };
        unmet(|demand| *demand == Demand::Denied)
            .or_else(|| unmet(|demand| matches!(demand, Demand::Scope(_))))
            .or_else(|| unmet(|demand| matches!(demand, Demand::Condition(_))))
    }

    fn condition(&self, requirements: &Requirements, place: u32) -> String {
        let mut condition = requirements.conditions[place as usize].to_string();
        // Needs are joined by "and", which binds tighter than these operators.
        if condition.contains("||") || condition.contains('?') {
            condition = format!("({condition})");
        }
        match self.faults.iter().find(|(faulty, _)| *faulty == place) {
            Some((_, fault)) => format!("{condition} (which can't be evaluated: {fault})"),
            None => condition,
        }
    }

    fn of_group(&self, group: &Group) -> Visibility {
        let mut visibility = Visibility::Allowed;
        for need in group.needs.iter().filter(|need| !self.is_met(need)) {
            match need.demand {
                Demand::Denied | Demand::Scope(_) => return Visibility::Hidden,
                Demand::Condition(_) => visibility = Visibility::Locked,
            }
        }
        visibility
    }

    fn is_met(&self, need: &Need) -> bool {
        match need.demand {
            Demand::Denied => false,
            Demand::Scope(place) => self.granted.contains(place as usize),
            Demand::Condition(place) => self.holding.contains(place as usize),
        }
    }
}
