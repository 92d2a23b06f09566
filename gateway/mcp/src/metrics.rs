//! Metrics of the gateway, in the format OpenMetrics 1.0.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::gateway::Overview;

/// Content type of the exposition text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// States of servers, which are there at 0 too.
const STATES: [&str; 6] = ["starting", "ready", "idle", "waiting", "needs login", "stopped"];

/// Returns the metrics of a gateway in this state.
pub(crate) fn exposed(overview: Overview) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Reading(overview)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _written = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Reading(Overview);

impl Collector for Reading {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(overview) = self;
        for (name, about, count) in [
            ("searches", "Searches of models", overview.searches),
            (
                "search_hits",
                "Searches of which a tool was called within the five calls behind them",
                overview.hits,
            ),
            (
                "search_misses",
                "Searches of which no tool was called within the five calls behind them",
                overview.misses,
            ),
            ("calls", "Calls of tools, refused ones too", overview.calls),
            ("calls_refused", "Calls that were refused", overview.refused),
            (
                "calls_failed",
                "Calls to which a server gave no result, through no fault of the caller's",
                overview.failed,
            ),
            ("calls_mended", "Calls whose form was mended", overview.mended),
            (
                "suspect_results",
                "Results of servers that are not trusted that look like instructions to models",
                overview.suspect,
            ),
        ] {
            let name = format!("toolgate_gateway_{name}");
            to.encode_descriptor(&name, about, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let about = "Tools of all servers";
        to.encode_descriptor("toolgate_gateway_tools", about, None, MetricType::Gauge)?
            .encode_gauge(&i64::try_from(overview.tools).unwrap_or(i64::MAX))?;
        let about = "Servers behind the gateway by state";
        let mut servers =
            to.encode_descriptor("toolgate_gateway_servers", about, None, MetricType::Gauge)?;
        for state in STATES {
            let count = overview.servers.iter().filter(|server| server.state == state).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let labels = [("state", state)];
            let series = servers.encode_family(&labels)?;
            prometheus_client::metrics::gauge::ConstGauge::new(count).encode(series)?;
        }
        let about = "Servers whose last calls failed one after another";
        let open = overview.servers.iter().filter(|server| server.is_circuit_open).count();
        to.encode_descriptor("toolgate_gateway_open_circuits", about, None, MetricType::Gauge)?
            .encode_gauge(&i64::try_from(open).unwrap_or(i64::MAX))?;
        Ok(())
    }
}
