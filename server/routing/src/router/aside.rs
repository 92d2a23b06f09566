//! Work over whole shards, off the async threads where the shard is large or its conditions are heavy.

use tracing::Span;

use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// Catalogs above this many tools are searched off the async threads.
const TOOLS_INLINE_MAX: usize = 10_000;

/// Conditions that may take more steps than this, about half a millisecond, are evaluated there too.
const STEPS_INLINE_MAX: usize = 20_000;

/// Runs work that asks the standing of a shard's tools, or searches them.
pub(super) async fn aside<T: Send + 'static>(
    snapshot: &Snapshot,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let is_light =
        snapshot.tools.len() <= TOOLS_INLINE_MAX && snapshot.requirements.steps <= STEPS_INLINE_MAX;
    if is_light {
        return work();
    }
    // What it logs, and its spans, stay those of the call.
    let call = Span::current();
    let work = move || call.in_scope(work);
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}
