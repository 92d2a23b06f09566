//! Background loop that writes the observed calls and reads the memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Memory;

/// Maintains the memory until `stop`, then writes the remaining calls. Returns at once if no tenant opted in.
pub async fn keep(memory: Arc<Memory>, every: Duration, stop: CancellationToken) {
    if memory.tenants.is_empty() {
        return;
    }
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let stopping = tokio::select! {
            () = stop.cancelled() => true,
            () = memory.wake.notified() => false,
            _ = ticks.tick() => false,
        };
        if let Err(error) = memory.flush().await {
            memory.metrics.flush_failed();
            warn!(%error, "what was observed could not be remembered");
        }
        if stopping {
            return;
        }
        if let Err(error) = memory.refresh().await {
            memory.metrics.refresh_failed();
            warn!(%error, "what is remembered could not be read; what was read before is used");
        }
        if let Err(error) = memory.trim().await {
            warn!(%error, "what has faded could not be forgotten yet");
        }
    }
}
