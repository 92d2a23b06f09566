//! Work over whole shards, off the async threads where the shard is large.

use crate::error::Error;
use crate::shard::snapshot::Snapshot;

/// Catalogs above this many tools are searched off the async threads.
const INLINE_MAX: usize = 10_000;

/// Runs work over a shard.
pub(super) async fn aside<T: Send + 'static>(
    snapshot: &Snapshot,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    if snapshot.tools.len() <= INLINE_MAX {
        return work();
    }
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}
