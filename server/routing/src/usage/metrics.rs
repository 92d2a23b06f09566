//! Metrics of the usage ledger. Clones share their counters.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Counters of the usage ledger's failures.
#[derive(Debug, Clone, Default)]
pub struct UsageMetrics {
    flush_failures: Counter,
    lost: Counter,
}

impl UsageMetrics {
    /// Registers all counters.
    pub fn register(&self, r: &mut Registry) {
        let failures = "Times that the usage ledger could not be written";
        r.register("toolgate_usage_flush_failures", failures, self.flush_failures.clone());
        let lost = "Additions to the usage ledger that found no room while the store failed";
        r.register("toolgate_usage_lost", lost, self.lost.clone());
    }

    /// Counts a failure to write the ledger.
    pub fn flush_failed(&self) {
        self.flush_failures.inc();
    }

    /// Counts additions that found no room.
    pub fn lost(&self, additions: u64) {
        self.lost.inc_by(additions);
    }
}
