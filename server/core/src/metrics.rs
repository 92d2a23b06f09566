//! Definitions that the metrics of all components share.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds of duration buckets in seconds. Most calls take less than 5 ms.
pub const BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// One label with a value from a closed set.
pub type Label = [(&'static str, &'static str); 1];

/// Histograms by label.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;
