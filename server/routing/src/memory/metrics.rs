//! Metrics of the memory of successful calls. Clones share their counters.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use toolgate_core::metrics::Label;

/// Metrics of the memory of successful calls.
#[derive(Clone, Debug, Default)]
pub struct MemoryMetrics {
    observations: Counter,
    dropped: Counter,
    learned: Family<Label, Counter>,
    exemplars: Gauge,
    flush_failures: Counter,
    refresh_failures: Counter,
}

impl MemoryMetrics {
    /// Registers all metrics.
    pub fn register(&self, r: &mut Registry) {
        let taken = "Calls that Gate allowed and that wait to be remembered";
        r.register("toolgate_memory_observations", taken, self.observations.clone());
        let dropped = "Such calls that found no room, or that the store did not take";
        r.register("toolgate_memory_dropped", dropped, self.dropped.clone());
        let learned = "What became of such calls: made an exemplar, merged into one, or ignored";
        r.register("toolgate_memory_learned", learned, self.learned.clone());
        let exemplars = "Exemplars that this process holds";
        r.register("toolgate_memory_exemplars", exemplars, self.exemplars.clone());
        let flush = "Times that observed calls could not be written";
        r.register("toolgate_memory_flush_failures", flush, self.flush_failures.clone());
        let refresh = "Times that what is remembered could not be read";
        r.register("toolgate_memory_refresh_failures", refresh, self.refresh_failures.clone());
    }

    /// Counts a call that waits to be remembered.
    pub fn observed(&self) {
        self.observations.inc();
    }

    /// Counts calls that found no room or that the store did not take.
    pub fn dropped(&self, calls: u64) {
        self.dropped.inc_by(calls);
    }

    /// Counts a call by its effect on the memory.
    pub fn learned(&self, outcome: &'static str) {
        self.learned.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Sets the number of exemplars held in this process.
    pub fn held(&self, exemplars: usize) {
        self.exemplars.set(i64::try_from(exemplars).unwrap_or(i64::MAX));
    }

    /// Counts a failure to write observed calls.
    pub fn flush_failed(&self) {
        self.flush_failures.inc();
    }

    /// Counts a failure to read the memory.
    pub fn refresh_failed(&self) {
        self.refresh_failures.inc();
    }
}
