//! Deferral decision of one Route call: the token cost of the tools that may be deferred, and the resulting decision.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use crate::router::allow::Allowed;
use crate::router::query::Options;
use crate::shard::snapshot::Snapshot;
use toolgate_core::deferral::{Decision, Policy};
use toolgate_core::identity::TenantId;
use toolgate_store::{ContentHash, Revision};

/// Maximum number of tool sets whose costs are cached, over all tenants.
const COSTS_KEPT: usize = 10_000;

/// Cached costs of sets of deferrable tools in tokens, by tenant, revision and set.
pub(in crate::router) struct Costs(Cache<(TenantId, Revision, ContentHash), u64>);

impl Default for Costs {
    fn default() -> Self {
        Self(Cache::new(COSTS_KEPT))
    }
}

/// Inputs of a deferral decision.
pub(in crate::router) struct Deferring {
    pub(in crate::router) tenant: TenantId,
    pub(in crate::router) policy: Arc<Policy>,
    pub(in crate::router) costs: Arc<Costs>,
}

/// Deferral decision, and the number of tools that it leaves to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deferral {
    /// Decision of the deferral policy.
    pub decision: Decision,
    /// Number of tools that may be shown, loaded or not.
    allowed: usize,
    /// Tokens of their definitions.
    pub allowed_tokens: u64,
    /// Number of those tools that are not in the active set.
    pub deferred_tools: usize,
}

impl Deferring {
    /// Decides for one call whether tools are deferred.
    pub(in crate::router) fn decide(
        &self,
        snapshot: &Snapshot,
        allowed: &Allowed,
        options: &Options,
    ) -> Deferral {
        let cost = self.cost(snapshot, allowed.slots.as_ref());
        let window = options.context_window;
        let decision =
            self.policy.decide(&self.tenant, &options.deferral, &options.model, window, cost);
        Deferral {
            decision,
            allowed: allowed.count(snapshot),
            allowed_tokens: cost + always_loaded_tokens(snapshot, allowed.slots.as_ref()),
            deferred_tools: 0,
        }
    }

    /// Returns the tokens of the deferrable tools. Sums counts made at registration, and caches the sum by set.
    fn cost(&self, snapshot: &Snapshot, allowed: Option<&FixedBitSet>) -> u64 {
        let key = (self.tenant.clone(), snapshot.revision, name_of(allowed));
        if let Some(cost) = self.costs.0.get(&key) {
            return cost;
        }
        let tokens = &snapshot.deferrable_tokens;
        let cost = match allowed {
            None => tokens.iter().map(|tokens| u64::from(*tokens)).sum(),
            Some(set) => set.ones().map(|slot| u64::from(tokens[slot])).sum(),
        };
        self.costs.0.insert(key, cost);
        cost
    }
}

impl Deferral {
    /// Returns true if every tool that may be shown is in the active set because nothing is deferred.
    #[must_use]
    pub fn sends_everything(&self) -> bool {
        !self.decision.deferred && self.deferred_tools == 0
    }

    /// Returns true if no tool is deferred, though some may have had no room.
    #[must_use]
    pub fn sends_what_it_can(&self) -> bool {
        !self.decision.deferred
    }

    /// Returns the same decision, completed with the number of tools in the active set.
    pub(in crate::router) fn with_active(self, active: usize) -> Self {
        Self { deferred_tools: self.allowed.saturating_sub(active), ..self }
    }
}

/// Returns the tokens of the tools that are never deferred.
fn always_loaded_tokens(snapshot: &Snapshot, allowed: Option<&FixedBitSet>) -> u64 {
    let is_allowed = |slot: &&u32| allowed.is_none_or(|set| set.contains(**slot as usize));
    let always = snapshot.always_load.iter().filter(is_allowed);
    always.map(|slot| u64::from(snapshot.tool(*slot).schema_tokens)).sum()
}

fn name_of(set: Option<&FixedBitSet>) -> ContentHash {
    let mut hasher = Sha256::new();
    for block in set.into_iter().flat_map(FixedBitSet::as_slice) {
        hasher.update(block.to_le_bytes());
    }
    // `None`, which stands for all tools, and an empty set must have different names.
    hasher.update([u8::from(set.is_some())]);
    hasher.finalize().into()
}
