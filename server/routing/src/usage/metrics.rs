//! Metrics of the usage ledger. Clones share their counters.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Counters of the usage ledger: its failures, and searches of all tenants.
#[derive(Debug, Clone, Default)]
pub struct UsageMetrics {
    flush_failures: Counter,
    lost: Counter,
    search_hits: Counter,
    search_misses: Counter,
}

impl UsageMetrics {
    /// Registers all counters.
    pub fn register(&self, r: &mut Registry) {
        let failures = "Times that the usage ledger could not be written";
        r.register("toolgate_usage_flush_failures", failures, self.flush_failures.clone());
        let lost = "Additions to the usage ledger that found no room while the store failed";
        r.register("toolgate_usage_lost", lost, self.lost.clone());
        let hits = "Searches of which a tool was called within the five calls behind them";
        r.register("toolgate_search_hits", hits, self.search_hits.clone());
        let misses = "Searches that showed nothing, or of whose tools none was called in time";
        r.register("toolgate_search_misses", misses, self.search_misses.clone());
    }

    /// Counts searches that were decided.
    pub fn searches_decided(&self, hits: u64, misses: u64) {
        self.search_hits.inc_by(hits);
        self.search_misses.inc_by(misses);
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
