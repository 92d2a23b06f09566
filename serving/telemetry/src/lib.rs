//! Logs and traces of a process. Log lines go to standard error. If a collector is configured, spans are exported to it
//! (OTLP over gRPC). Without a collector, spans cost a call nothing. No call waits for the collector or for the reader
//! of the log.

mod calls;
mod context;
mod exporting;
mod lines;
mod mcp;
mod metrics;
mod process;

use std::io;
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

pub use calls::{CallSpan, SPANS, part, sampled_span};
pub use context::{TraceHeaders, headers_of_trace, in_trace, sampled_trace, trace_headers};
pub use exporting::Exporting;
use exporting::Outlet;
pub use lines::LogFilter;
use lines::WaitingLines;
pub use mcp::{McpServerLabel, McpSpan, serves_tool};
pub use metrics::{RpcMethod, TraceLabel, register_process};

/// Target of decision events: one record for each call that decides something.
pub const DECISIONS: &str = "toolgate::decision";

/// Target of events that tell why a call was answered worse than usual. The call's span has them. The log does not: it has
/// warnings of its own, which are fewer.
pub const DEGRADED: &str = "toolgate::degraded";

/// Target of log records that contain an intent. They are never attached to spans.
pub const INTENTS: &str = "toolgate::intents";

type AnyLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Selection and format of log records.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Targets and their levels, in the syntax of `tracing_subscriber::EnvFilter`.
    pub filter: String,
    /// True for one JSON object a line; false for text that people read.
    pub json: bool,
}

/// Destination of spans, and the share of calls that have some.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceOptions {
    /// Address of the collector, such as `http://127.0.0.1:4317`.
    pub endpoint: String,
    /// Name of this service in traces.
    pub service_name: String,
    /// Share of calls that are sampled, 0 to 1, when the caller has not decided.
    pub sample_ratio: f64,
    /// Time within which the collector must accept a batch.
    pub timeout: Duration,
}

/// Started logging, with spans that wait to be exported.
pub struct Telemetry {
    outlet: Option<Outlet>,
    filter: LogFilter,
    lines: WaitingLines,
}

/// Starts logging, and the recording of spans if `traces` is given. A second call has no effect.
#[must_use]
pub fn start(log: &LogOptions, traces: Option<&TraceOptions>) -> Telemetry {
    let (writers, lines) = lines::writers(io::stderr(), lines::ROOM);
    let (layer, filter) = lines::layer(log, writers, traces.is_some());
    let mut layers: Vec<AnyLayer> = vec![layer];
    let outlet = traces.map(|options| {
        let (layer, outlet) = exporting::prepare(options);
        layers.push(layer);
        outlet
    });
    let started = tracing_subscriber::registry().with(layers).try_init();
    if started.is_ok() {
        lines.show_dropped();
        if outlet.is_some() {
            context::record_from_now();
        }
    }
    Telemetry { outlet, filter, lines }
}

impl Telemetry {
    /// Returns the handle that changes the log filter at run time.
    #[must_use]
    pub fn filter(&self) -> LogFilter {
        self.filter.clone()
    }

    /// Starts the export. Must be called within a tokio runtime.
    #[must_use]
    pub fn export(self) -> Exporting {
        Exporting::begin(self.outlet, self.lines)
    }
}

/// Returns what is wrong with a collector's address, if anything.
#[must_use]
pub fn endpoint_mistake(endpoint: &str) -> Option<&'static str> {
    let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    match rest {
        None => Some("it must begin with http:// or https://"),
        Some(_) if endpoint.parse::<http::Uri>().is_err() => {
            Some("it is no address of a collector")
        }
        Some(rest) if rest.starts_with([':', '/']) => Some("the host is missing"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collectors_address_has_scheme_and_host() {
        for good in ["http://127.0.0.1:4317", "https://otel.example:4317", "http://[::1]:4317"] {
            assert_eq!(endpoint_mistake(good), None, "{good}");
        }
        for bad in ["", "127.0.0.1:4317", "grpc://a:1", "http://", "http://:4317", "http://a b"] {
            assert!(endpoint_mistake(bad).is_some(), "{bad}");
        }
    }
}
