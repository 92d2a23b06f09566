//! Work over whole shards. It leaves the async threads if the shard is large or its conditions are heavy.

use tracing::Span;

use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// Number of tools of a catalog above which work leaves the async threads.
const TOOLS_INLINE_MAX: usize = 10_000;

/// Number of steps of conditions above which work leaves the async threads; it takes about half a millisecond.
const STEPS_INLINE_MAX: usize = 20_000;

/// Runs work that evaluates or searches the tools of a shard. Heavy work runs on a blocking thread.
pub(in crate::router) async fn aside<T: Send + 'static>(
    snapshot: &Snapshot,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let is_light =
        snapshot.tools.len() <= TOOLS_INLINE_MAX && snapshot.requirements.steps <= STEPS_INLINE_MAX;
    if is_light {
        return work();
    }
    // Keeps the logs and spans of the work within those of the call.
    let call = Span::current();
    let work = move || call.in_scope(work);
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}
