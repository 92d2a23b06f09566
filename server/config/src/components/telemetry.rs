//! Export of traces.

use toolgate_telemetry::TraceOptions;

use crate::Settings;

/// Export of traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetryConfig {
    /// Collector and sampling of traces; `None` when calls are not traced.
    pub traces: Option<TraceOptions>,
}

impl From<&Settings> for TelemetryConfig {
    fn from(settings: &Settings) -> Self {
        let service_name = settings.text("telemetry.service_name").unwrap_or_default();
        let sample_ratio = settings.decimal("telemetry.sample_ratio");
        let timeout = settings.duration("telemetry.timeout");
        let endpoint = settings.text("telemetry.otlp_endpoint");
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        let to = |endpoint| TraceOptions { endpoint, service_name, sample_ratio, timeout };
        Self { traces: endpoint.map(to) }
    }
}
