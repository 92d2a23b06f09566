//! Export of traces.

use toolgate_telemetry::TraceOptions;

use crate::{Settings, keys};

/// Export of traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetryConfig {
    /// Collector and sampling of traces; `None` when calls are not traced.
    pub traces: Option<TraceOptions>,
}

impl From<&Settings> for TelemetryConfig {
    fn from(settings: &Settings) -> Self {
        let service_name = settings.read(&keys::TELEMETRY_SERVICE_NAME);
        let sample_ratio = settings.read(&keys::TELEMETRY_SAMPLE_RATIO);
        let timeout = settings.read(&keys::TELEMETRY_TIMEOUT);
        let endpoint = settings.read_optional(&keys::TELEMETRY_OTLP_ENDPOINT);
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        let to = |endpoint| TraceOptions { endpoint, service_name, sample_ratio, timeout };
        Self { traces: endpoint.map(to) }
    }
}
