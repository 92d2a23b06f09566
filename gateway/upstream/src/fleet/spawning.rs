//! Turns of processes to start: few at a time, so that a machine is not busy with all of them.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::SemaphorePermit;

use super::server::Server;
use crate::target::Upstream;

/// Turn of a process to start; `None` for a URL, which starts nothing.
pub(super) type SpawnTurn<'s> = Option<SemaphorePermit<'s>>;

impl Server {
    /// Waits until the server may be started.
    pub(super) async fn spawn_turn(&self) -> SpawnTurn<'_> {
        match self.entry.upstream {
            Upstream::Process(_) => self.surroundings.spawns.acquire().await.ok(),
            Upstream::Http(_) => None,
        }
    }
}

/// Starts a server, and ends its turn once it has started, or after `longest`: one that hangs keeps no other from its start.
pub(super) async fn start_in<T>(
    turn: SpawnTurn<'_>,
    longest: Duration,
    start: impl Future<Output = T>,
) -> T {
    let mut start = pin!(start);
    let started = tokio::time::timeout(longest, &mut start).await;
    drop(turn);
    match started {
        Ok(started) => started,
        Err(_slow) => start.await,
    }
}
