//! Whether a tenant's shard would still be kept after a registration.

use std::sync::Arc;

use super::Shards;
use crate::catalog::plan::Mode;
use crate::catalog::registration::Registration;
use crate::error::Error;
use crate::identity::TenantId;
use crate::shard::tool::Tool;

/// Bytes of a shard for each of the definitions of its tools, where there is no shard yet to tell.
const BYTES_A_BYTE: u64 = 2;

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
        if body * BYTES_A_BYTE <= most / 16 && self.kept.peek(tenant).is_none() {
            return Ok(());
        }
        // A tenant without a catalog has no shard; a store that can't be read fails the registration itself.
        let Ok(snapshot) = self.get(tenant, 0).await else {
            return refuse_above(most, body * BYTES_A_BYTE, 0);
        };
        let of_all = definitions(snapshot.tools.iter()).max(1);
        let replaced = match (registration.mode, snapshot.servers.get(&registration.server.name)) {
            (Mode::Replace, Some(slots)) => {
                definitions(slots.iter().map(|slot| snapshot.tool(*slot)))
            }
            _ => 0,
        };
        let before = snapshot.memory_bytes() as u64;
        let scaled = u128::from(before) * u128::from((of_all - replaced.min(of_all)) + body)
            / u128::from(of_all);
        refuse_above(most, u64::try_from(scaled).unwrap_or(u64::MAX), before)
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
