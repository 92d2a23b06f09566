//! Metrics of calls in progress, computed when they are scraped. Clones share the same values.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Function that returns the number of calls in progress, the number of interactive ones, and the limit on interactive ones.
type Reading = Box<dyn Fn() -> [usize; 3] + Send + Sync>;

const SHOWN: [(&str, &str); 3] = [
    ("toolgate_admission_calls", "Calls in progress"),
    ("toolgate_admission_interactive_calls", "Calls in progress that are answered without delay"),
    (
        "toolgate_admission_limit",
        "Interactive calls that may be in progress, for that none waits long",
    ),
];

/// Metrics of admission: calls in progress and their limit.
#[derive(Clone, Default)]
pub struct AdmissionMetrics {
    reading: Arc<OnceLock<Reading>>,
}

impl fmt::Debug for AdmissionMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AdmissionMetrics").finish_non_exhaustive()
    }
}

impl AdmissionMetrics {
    /// Registers all metrics of admission.
    pub fn register(&self, r: &mut Registry) {
        r.register_collector(Box::new(self.clone()));
    }

    /// Sets the source of the values: calls in progress, interactive ones, and the limit on these. Only the first call has
    /// an effect.
    pub fn show(&self, reading: impl Fn() -> [usize; 3] + Send + Sync + 'static) {
        drop(self.reading.set(Box::new(reading)));
    }
}

impl Collector for AdmissionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(read) = self.reading.get() else { return Ok(()) };
        for ((name, help), value) in SHOWN.into_iter().zip(read()) {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        Ok(())
    }
}
