//! Background loop that writes the ledger to the store every few seconds and deletes old usage.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ledger::Ledger;
use super::metrics::UsageMetrics;
use toolgate_config::UsageConfig;
use toolgate_store::Hour;

/// Maintains the ledger until `stop`, then writes the remaining amounts.
pub async fn keep(
    ledger: Arc<Ledger>,
    config: UsageConfig,
    metrics: UsageMetrics,
    stop: CancellationToken,
) {
    let mut ticks = interval(config.flush_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut forgotten: Hour = 0;
    loop {
        let stopping = tokio::select! {
            () = stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        if let Err(error) = ledger.flush().await {
            metrics.flush_failed();
            warn!(%error, "the usage ledger could not be written; what was counted waits");
        }
        let (hits, misses) = ledger.take_decided();
        metrics.searches_decided(hits, misses);
        let lost = ledger.take_lost();
        if lost > 0 {
            metrics.lost(lost);
            warn!(lost, "usage was not counted: too much waits for the store");
        }
        if stopping {
            return;
        }
        let oldest = ledger.hour().saturating_sub(config.retention_hours);
        if oldest > forgotten {
            match ledger.forget(oldest).await {
                Ok(()) => forgotten = oldest,
                Err(error) => warn!(%error, "old usage could not be forgotten yet"),
            }
        }
    }
}
