//! Caps on the tools chosen by rank: for one MCP server, for the tools of a policy rule, and for untrusted MCP servers.
//! They keep one party from filling an active set, or the answer to a search, alone. Tools chosen for another reason
//! count towards the caps. A cap never leaves them out, except for untrusted always-loaded tools.

use std::collections::HashMap;

use crate::router::ranking::rank::Candidate;
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::ServerName;
use toolgate_core::policy::Policy;

/// Limits on tools of untrusted MCP servers that are chosen by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedCaps {
    /// Maximum number of tools of one untrusted MCP server.
    pub per_server: usize,
    /// Maximum number of tools of all untrusted MCP servers together, while tools of others want the places. Never more
    /// than half of the places.
    pub active: usize,
}

impl Default for UntrustedCaps {
    /// Returns the product's defaults.
    fn default() -> Self {
        Self { per_server: 5, active: 5 }
    }
}

/// Counter of chosen tools, held against the caps.
pub struct Caps<'a> {
    policy: &'a Policy,
    untrusted: UntrustedCaps,
    of_untrusted: usize,
    of_server: HashMap<&'a ServerName, usize>,
    of_rule: HashMap<u32, usize>,
    of_rule_and_server: HashMap<(u32, &'a ServerName), usize>,
}

impl<'a> Caps<'a> {
    /// Creates a counter for this number of places, with nothing chosen yet. Limits untrusted tools together to half of
    /// the places, but not below one.
    #[must_use]
    pub fn new(policy: &'a Policy, untrusted: UntrustedCaps, places: usize) -> Self {
        let active = untrusted.active.min((places / 2).max(1));
        let untrusted = UntrustedCaps { active, ..untrusted };
        let of_server = HashMap::new();
        let of_rule = HashMap::new();
        let of_rule_and_server = HashMap::new();
        Self { policy, untrusted, of_untrusted: 0, of_server, of_rule, of_rule_and_server }
    }

    /// Returns true if any caps exist, so that a search must look beyond `top_k`.
    #[must_use]
    pub fn exist(snapshot: &Snapshot) -> bool {
        let policy = &snapshot.policy;
        let caps = |choosing: &toolgate_core::policy::Choosing| {
            choosing.top_k.is_some() || choosing.max_per_server.is_some()
        };
        policy.defaults.max_per_server.is_some()
            || policy.rules.iter().any(|r| caps(&r.choosing))
            || !snapshot.untrusted.is_clear()
    }

    /// Returns true if this tool's place should go to a tool of a more trusted MCP server, if one wants it.
    #[must_use]
    pub fn gives_way(&self, snapshot: &Snapshot, slot: u32) -> bool {
        snapshot.tool(slot).untrusted && self.of_untrusted >= self.untrusted.active
    }

    /// Returns the limit that leaves an untrusted tool no place, as operators know it; `None` if the tool has a place.
    #[must_use]
    pub fn reached(&self, snapshot: &Snapshot, slot: u32) -> Option<&'static str> {
        let of_server = self.of_server.get(&snapshot.tool(slot).id.server);
        if of_server.is_some_and(|count| *count >= self.untrusted.per_server) {
            Some("safety.untrusted_max_per_server")
        } else if self.gives_way(snapshot, slot) {
            Some("safety.untrusted_max_active")
        } else {
            (!self.admit(snapshot, slot)).then_some("a cap of the policy")
        }
    }

    /// Returns true if this tool can be added within every cap.
    #[must_use]
    pub fn admit(&self, snapshot: &Snapshot, slot: u32) -> bool {
        let tool = snapshot.tool(slot);
        let server = &tool.id.server;
        let below = |cap: Option<usize>, count: Option<&usize>| {
            cap.is_none_or(|cap| count.copied().unwrap_or(0) < cap)
        };
        let of_rule = |rule: &u32| {
            let choosing = &self.policy.rules[*rule as usize].choosing;
            let here = self.of_rule_and_server.get(&(*rule, server));
            below(choosing.top_k, self.of_rule.get(rule)) && below(choosing.max_per_server, here)
        };
        let of_untrusted = tool.untrusted.then_some(self.untrusted.per_server);
        below(self.policy.defaults.max_per_server, self.of_server.get(server))
            && below(of_untrusted, self.of_server.get(server))
            && tool.caps.iter().all(of_rule)
    }

    /// Gives tools at most `places` places in their order, as far as the caps admit them. Tools that give way come
    /// last, if places are left.
    #[must_use]
    pub fn share(
        mut self,
        snapshot: &'a Snapshot,
        ordered: impl Iterator<Item = Candidate>,
        places: usize,
    ) -> Vec<Candidate> {
        let mut chosen = Vec::new();
        let mut waiting = Vec::new();
        for candidate in ordered {
            if chosen.len() == places {
                break;
            }
            if !self.admit(snapshot, candidate.slot) {
                continue;
            }
            if self.gives_way(snapshot, candidate.slot) {
                waiting.push(candidate);
            } else {
                self.count(snapshot, candidate.slot);
                chosen.push(candidate);
            }
        }
        for candidate in waiting {
            if chosen.len() < places && self.admit(snapshot, candidate.slot) {
                self.count(snapshot, candidate.slot);
                chosen.push(candidate);
            }
        }
        chosen
    }

    /// Counts a tool that was chosen.
    pub fn count(&mut self, snapshot: &'a Snapshot, slot: u32) {
        let tool = snapshot.tool(slot);
        *self.of_server.entry(&tool.id.server).or_default() += 1;
        self.of_untrusted += usize::from(tool.untrusted);
        for rule in &tool.caps {
            *self.of_rule.entry(*rule).or_default() += 1;
            *self.of_rule_and_server.entry((*rule, &tool.id.server)).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests;
