//! Options of the spans that are exported.

use std::time::Duration;

use clap::Args;
use toolgate_telemetry::{TraceOptions, endpoint_mistake};

use super::parse_duration;

/// Where spans go, and which calls have some.
#[derive(Debug, Clone, Args)]
pub(super) struct SpanArguments {
    /// The collector that spans of calls are sent to, by OTLP over gRPC, such as http://127.0.0.1:4317. Without it,
    /// calls are not traced.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_TELEMETRY_OTLP_ENDPOINT",
        value_name = "URL",
        value_parser = parse_endpoint
    )]
    telemetry_otlp_endpoint: Option<String>,
    /// The share of calls that are traced, from 0 to 1, where the caller has not decided.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_TELEMETRY_SAMPLE_RATIO",
        default_value = "1",
        value_name = "RATIO",
        value_parser = parse_ratio
    )]
    telemetry_sample_ratio: f64,
    /// What the worker is called in traces.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_TELEMETRY_SERVICE_NAME",
        default_value = "toolgate-encoder-worker",
        value_name = "NAME"
    )]
    telemetry_service_name: String,
    /// How long the collector may take to accept spans. No call waits for it.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_TELEMETRY_TIMEOUT",
        default_value = "5s",
        value_name = "DURATION",
        value_parser = parse_duration
    )]
    telemetry_timeout: Duration,
}

impl SpanArguments {
    pub(super) fn options(&self) -> Option<TraceOptions> {
        let endpoint = self.telemetry_otlp_endpoint.clone().filter(|url| !url.is_empty())?;
        Some(TraceOptions {
            endpoint,
            service_name: self.telemetry_service_name.clone(),
            sample_ratio: self.telemetry_sample_ratio,
            timeout: self.telemetry_timeout,
        })
    }
}

/// Nothing is as good as no option: variables are easier emptied than taken away.
fn parse_endpoint(text: &str) -> Result<String, String> {
    match endpoint_mistake(text) {
        Some(problem) if !text.is_empty() => Err(problem.into()),
        _ => Ok(text.into()),
    }
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected a number from 0 to 1".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        spans: SpanArguments,
    }

    fn options(line: &str) -> Result<Option<TraceOptions>, String> {
        let parsed = Line::try_parse_from(line.split_whitespace());
        parsed.map(|line| line.spans.options()).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_traced_until_a_collector_is_named() {
        assert_eq!(options("worker --telemetry-sample-ratio 0.5"), Ok(None));
        let named = options("worker --telemetry-otlp-endpoint http://c:4317");
        let named = named.expect("a good line").expect("a collector");
        assert_eq!(named.service_name, "toolgate-encoder-worker");
        for line in ["--telemetry-otlp-endpoint c:4317", "--telemetry-sample-ratio 1.5"] {
            assert!(options(&format!("worker {line}")).is_err(), "{line}");
        }
    }
}
