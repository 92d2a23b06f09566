//! Whether a tenant's shard would still be kept after a registration.

use std::sync::Arc;

use super::{For, Shards};
use crate::catalog::plan::Mode;
use crate::catalog::registration::Registration;
use crate::shard::tool::Tool;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Bytes of a shard for each of the definitions of its tools, where there is no shard yet to tell.
const BYTES_A_BYTE: u64 = 2;

/// The same at most where there is one: of a shard with hardly a tool that is shown, other things take most.
const BYTES_A_BYTE_MAX: u64 = 100;

/// Bytes of a shard that a tool takes at most, but for few.
const BYTES_A_TOOL: u64 = 128 << 10;

/// The part of what a shard may have that is small enough not to be looked at.
const SMALL: u64 = 16;

/// MCP servers whose tools are counted; a tenant with as many is not small.
const SERVERS_COUNTED: u32 = 100;

impl Shards {
    /// Refuses a registration with which the tenant's shard would be too large to be kept in memory. What is there
    /// already tells how much memory definitions take.
    ///
    /// # Errors
    /// [`Error::StockExceeded`], which names the budget.
    pub async fn must_hold(
        self: &Arc<Self>,
        tenant: &TenantId,
        registration: &Registration,
    ) -> Result<(), Error> {
        let most = self.kept.most();
        let body = registration.body.len() as u64;
        let is_small = body * BYTES_A_BYTE <= most / SMALL;
        if is_small && self.kept.peek(tenant).is_none() && self.is_small(tenant).await {
            return Ok(());
        }
        // A tenant without a catalog has no shard; a store that can't be read fails the registration itself.
        let Ok(snapshot) = self.get_for(tenant, 0, For::Change).await else {
            return refuse_above(most, body * BYTES_A_BYTE, 0);
        };
        let replaced = match (registration.mode, snapshot.servers.get(&registration.server.name)) {
            (Mode::Replace, Some(slots)) => {
                definitions(slots.iter().map(|slot| snapshot.tool(*slot)))
            }
            _ => 0,
        };
        let before = snapshot.memory_bytes() as u64;
        let of_all = definitions(snapshot.tools.iter()).max(before / BYTES_A_BYTE_MAX).max(1);
        let scaled = u128::from(before) * u128::from((of_all - replaced.min(of_all)) + body)
            / u128::from(of_all);
        refuse_above(most, u64::try_from(scaled).unwrap_or(u64::MAX), before)
    }

    /// Returns whether the tenant has so few tools that its shard is small, whatever they are like. A store that can't be
    /// read fails the registration itself.
    async fn is_small(&self, tenant: &TenantId) -> bool {
        let Ok(servers) = self.store.list_servers(tenant, None, SERVERS_COUNTED).await else {
            return true;
        };
        let tools: u64 = servers.iter().map(|server| u64::from(server.tool_count)).sum();
        let is_all = servers.len() < SERVERS_COUNTED as usize;
        is_all && tools * BYTES_A_TOOL <= self.kept.most() / SMALL
    }
}

fn definitions<'a>(tools: impl Iterator<Item = &'a Tool>) -> u64 {
    tools.map(|tool| tool.definition.memory_bytes() as u64).sum()
}

fn refuse_above(maximum: u64, actual: u64, before: u64) -> Result<(), Error> {
    // What makes a shard smaller is never refused.
    if actual <= maximum || actual <= before {
        return Ok(());
    }
    Err(Error::StockExceeded { limit: "shard.memory_budget", maximum, actual })
}
