//! Summary pool of a tenant: whole, or its changes since a revision.

use std::sync::Arc;

use crate::gate::handle::Holder;
use crate::gate::visibility::Visibilities;
use crate::router::Router;
use crate::router::answers::pool::{self, PoolDelta};
use crate::router::aside::aside;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::state::AgentState;
use toolgate_store::Revision;

/// Request for the summary pool.
#[derive(Debug, Clone, Default)]
pub struct PoolQuery {
    /// State of the agent: its calls so far and its scopes.
    pub state: AgentState,
    /// Revision that the client holds; `None` for the whole pool.
    pub since: Option<Revision>,
    /// True to list names without summaries.
    pub names_only: bool,
    /// True to include the pool as text for a prompt as well.
    pub render: bool,
}

impl Router {
    /// Returns the summary pool, whole or since a revision, with its snapshot.
    ///
    /// # Errors
    /// An unknown tenant, or a store that can't be read.
    pub async fn summary_pool(
        &self,
        holder: Holder<'_>,
        query: PoolQuery,
    ) -> Result<(Arc<Snapshot>, PoolDelta), Error> {
        let snapshot = self.shards.get(holder.tenant, 0).await?;
        let shard = Arc::clone(&snapshot);
        let read = move || {
            let visibilities = Visibilities::of(&shard, &query.state);
            let mut delta = pool::delta(&shard, &visibilities, query.since);
            if query.names_only {
                delta = delta.with_names_only(&shard, &visibilities);
            }
            Ok(if query.render { delta.with_text(&shard) } else { delta })
        };
        let delta = aside(&snapshot, read).await?;
        Ok((snapshot, delta))
    }
}
