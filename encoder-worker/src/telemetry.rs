//! Metrics of the worker. Their names are those that dashboards know: OpenTelemetry's for calls, `toolgate_*` for our
//! own. Canary and warm-up texts are counted like all others.

mod device;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use toolgate_telemetry::{RpcMethod, TraceLabel, register_process, sampled_trace};

use super::lifecycle::Lifecycle;
use device::DeviceCollector;

/// Upper bounds of the buckets in seconds; most calls take less than 5 ms.
const BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Labels of a call: its method and its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    /// RPC system; always `grpc`.
    rpc_system_name: &'static str,
    /// Package, service and method.
    rpc_method: RpcMethod,
    /// The gRPC code, such as `OK`.
    rpc_response_status_code: &'static str,
    /// Error reason; empty on success.
    error_type: &'static str,
}

type CallTimes = HistogramWithExemplars<TraceLabel>;
type Calls = Family<CallLabels, CallTimes, fn() -> CallTimes>;

/// Counters and the registry that exposes them.
pub(super) struct Metrics {
    registry: Registry,
    calls: Calls,
    connections_refused: Counter,
    canary_runs: Counter,
    canary_failures: Counter,
    canary_lowest: Gauge<f64, AtomicU64>,
}

impl Metrics {
    pub(super) fn new(lifecycle: Arc<Lifecycle>) -> Self {
        let times: fn() -> CallTimes = || CallTimes::new(BUCKETS.into_iter());
        let mut metrics = Self {
            registry: Registry::default(),
            calls: Family::new_with_constructor(times),
            connections_refused: Counter::default(),
            canary_runs: Counter::default(),
            canary_failures: Counter::default(),
            canary_lowest: Gauge::default(),
        };
        metrics.register();
        metrics.registry.register_collector(Box::new(DeviceCollector { lifecycle }));
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        register_process(r);
        let calls = "Time from a call's arrival to its answer, by gRPC code and reason";
        r.register_with_unit("rpc_server_call_duration", calls, Unit::Seconds, self.calls.clone());
        let refused = "Connections closed at once because there were too many";
        r.register("toolgate_connections_refused", refused, self.connections_refused.clone());
        let runs = "Runs of the canary since the worker serves";
        r.register("toolgate_canary_runs", runs, self.canary_runs.clone());
        let failures = "Runs of the canary that found the device unfit";
        r.register("toolgate_canary_failures", failures, self.canary_failures.clone());
        let lowest = "Lowest cosine to its reference in the last run of the canary that was right";
        r.register("toolgate_canary_lowest_cosine", lowest, self.canary_lowest.clone());
    }

    /// Counts a call that ended; must be called within its span. `error_type` is the name of the reason, empty on
    /// success.
    pub(super) fn call(
        &self,
        rpc_method: &'static str,
        rpc_response_status_code: &'static str,
        error_type: &'static str,
        seconds: f64,
    ) {
        let labels = CallLabels {
            rpc_system_name: "grpc",
            rpc_method: RpcMethod(rpc_method),
            rpc_response_status_code,
            error_type,
        };
        let trace = sampled_trace().map(|trace_id| TraceLabel { trace_id });
        let at = trace.is_some().then(SystemTime::now);
        self.calls.get_or_create(&labels).observe(seconds, trace, at);
    }

    /// Counts a connection that was closed at once.
    pub(super) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// Counts a run of the canary, with its lowest cosine, or `None` when it failed.
    pub(super) fn canary(&self, lowest: Option<f64>) {
        self.canary_runs.inc();
        match lowest {
            Some(lowest) => drop(self.canary_lowest.set(lowest)),
            None => drop(self.canary_failures.inc()),
        }
    }

    /// Returns the exposition text (OpenMetrics 1.0).
    pub(super) fn expose(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String does not fail");
        text
    }
}
