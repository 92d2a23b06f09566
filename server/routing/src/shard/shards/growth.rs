//! Check before a registration that the tenant's shard would still fit in memory after it.

use std::sync::Arc;

use super::{For, Shards};
use crate::catalog::plan::Mode;
use crate::catalog::registration::Registration;
use crate::shard::tool::Tool;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Estimated bytes of a shard per byte of its tools' definitions, if there is no shard to measure yet.
const BYTES_A_BYTE: u64 = 2;

/// Maximum of this ratio if there is a shard. A shard with hardly any visible tool consists mostly of other data.
const BYTES_A_BYTE_MAX: u64 = 100;

/// Maximum bytes of a tool in a shard, with few exceptions.
const BYTES_A_TOOL: u64 = 128 << 10;

/// Divisor of the maximum size of a shard. Shards below this part of it are small enough not to be checked.
const SMALL: u64 = 16;

/// Maximum MCP servers whose tools are counted. A tenant with this many is not small.
const SERVERS_COUNTED: u32 = 100;

impl Shards {
    /// Refuses a registration that would make the tenant's shard too large for memory. The existing shard shows how
    /// much memory definitions take.
    ///
    /// # Errors
    /// [`Error::StockExceeded`] with the name of the budget.
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

    /// Returns true if the tenant has so few tools that its shard is small in any case. Also true if the store can't be
    /// read, which fails the registration itself.
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
    // A registration that makes the shard smaller is never refused.
    if actual <= maximum || actual <= before {
        return Ok(());
    }
    Err(Error::StockExceeded { limit: "shard.memory_budget", maximum, actual })
}
