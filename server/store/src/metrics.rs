//! Metrics of the store, computed when they are scraped. Clones share the same values.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// Function that returns the number of failed store calls, and the time since this process last was up to date.
type Reading = Box<dyn Fn() -> (u64, Duration) + Send + Sync>;

/// Metrics of the store: failed calls and the lag behind a shared store.
#[derive(Clone, Default)]
pub struct StoreMetrics {
    reading: Arc<OnceLock<Reading>>,
}

impl fmt::Debug for StoreMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StoreMetrics").finish_non_exhaustive()
    }
}

impl StoreMetrics {
    /// Registers all metrics of the store.
    pub fn register(&self, r: &mut Registry) {
        r.register_collector(Box::new(self.clone()));
    }

    /// Sets the source of the values: the number of failed calls, and the lag. Only the first call has an effect.
    pub fn show(&self, reading: impl Fn() -> (u64, Duration) + Send + Sync + 'static) {
        drop(self.reading.set(Box::new(reading)));
    }
}

impl Collector for StoreMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (failures, lag) = self.reading.get().map_or_else(Default::default, |read| read());
        let failures = ConstCounter::new(failures);
        let help = "Calls of the store that failed, since it could not be reached or read";
        let kind = failures.metric_type();
        failures.encode(encoder.encode_descriptor(
            "toolgate_store_failures",
            help,
            None,
            kind,
        )?)?;
        let lag = ConstGauge::new(lag.as_secs_f64());
        let help = "Time since this replica last knew itself to be up to date with a shared store";
        let unit = Unit::Seconds;
        let kind = lag.metric_type();
        lag.encode(encoder.encode_descriptor("toolgate_catalog_lag", help, Some(&unit), kind)?)
    }
}
