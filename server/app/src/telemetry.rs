//! Metrics. Calls use OpenTelemetry's names, which dashboards know, and our own metrics start with `toolgate_`. No
//! label contains a tenant.

mod rejection;

use std::time::SystemTime;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use toolgate_access::admission::AdmissionMetrics;
use toolgate_access::auth::AuthMetrics;
use toolgate_core::metrics::{BUCKETS, Label};
use toolgate_routing::catalog::SafetyMetrics;
use toolgate_routing::encoder::EncoderMetrics;
use toolgate_routing::memory::MemoryMetrics;
use toolgate_routing::usage::UsageMetrics;
use toolgate_store::StoreMetrics;
use toolgate_telemetry::{RpcMethod, TraceLabel, register_process, sampled_trace};

pub use rejection::Rejection;

use crate::pipeline::CallOutcome;

/// Figures of the shards in memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShardsReading {
    /// Approximate memory in bytes.
    pub bytes: u64,
    /// Number of tenants.
    pub tenants: u64,
    /// Highest revision of a catalog.
    pub highest_revision: u64,
}

/// Labels of a finished call: its method and its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// RPC system; always `grpc`.
    rpc_system_name: &'static str,
    /// Package, service and method.
    rpc_method: RpcMethod,
    /// Name of the gRPC code, such as `OK`.
    rpc_response_status_code: &'static str,
    /// Reason of the error; empty if the call succeeded.
    error_type: &'static str,
}

/// Histogram of call times. Each bucket holds the last sampled trace in it.
type Times = HistogramWithExemplars<TraceLabel>;
type TimesBy<L> = Family<L, Times, fn() -> Times>;

/// Metrics of the service.
pub struct Metrics {
    registry: Registry,
    calls: TimesBy<CallLabels>,
    stages: TimesBy<Label>,
    degraded: Family<Label, Counter>,
    rejected: Family<Label, Counter>,
    decisions: Family<Label, Counter>,
    tokens_full: Counter,
    tokens_promoted: Counter,
    tokens_phase1: Counter,
    tokens_saved: Counter,
    tokens_overspent: Counter,
    usage: UsageMetrics,
    shard_memory: Gauge,
    shards: Gauge,
    catalog_revision: Gauge,
    encoder: EncoderMetrics,
    memory: MemoryMetrics,
    safety: SafetyMetrics,
    store: StoreMetrics,
    auth: AuthMetrics,
    admission: AdmissionMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let times: fn() -> Times = || Times::new(BUCKETS.into_iter());
        let mut metrics = Self {
            registry: Registry::default(),
            calls: Family::new_with_constructor(times),
            stages: Family::new_with_constructor(times),
            degraded: Family::default(),
            rejected: Family::default(),
            decisions: Family::default(),
            tokens_full: Counter::default(),
            tokens_promoted: Counter::default(),
            tokens_phase1: Counter::default(),
            tokens_saved: Counter::default(),
            tokens_overspent: Counter::default(),
            usage: UsageMetrics::default(),
            shard_memory: Gauge::default(),
            shards: Gauge::default(),
            catalog_revision: Gauge::default(),
            encoder: EncoderMetrics::default(),
            memory: MemoryMetrics::default(),
            safety: SafetyMetrics::default(),
            store: StoreMetrics::default(),
            auth: AuthMetrics::default(),
            admission: AdmissionMetrics::default(),
        };
        metrics.register();
        metrics.begin_at_zero();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let r = &mut self.registry;
        register_process(r);
        let calls = "Time from a call's arrival to its answer, by gRPC code and reason";
        r.register_with_unit("rpc_server_call_duration", calls, Unit::Seconds, self.calls.clone());
        let stages = "Time that one stage of a Route call took";
        let name = "toolgate_route_stage_duration";
        r.register_with_unit(name, stages, Unit::Seconds, self.stages.clone());
        let degraded = "Route answers that were worse than usual, by reason";
        r.register("toolgate_route_degraded", degraded, self.degraded.clone());
        let rejected = "Calls refused at the edge";
        r.register("toolgate_admission_rejected", rejected, self.rejected.clone());
        let decisions = "Verdicts of Gate, by refusal code or ALLOWED";
        r.register("toolgate_gate_decisions", decisions, self.decisions.clone());
        let full = "cl100k_base tokens that sending every schema would have cost";
        r.register("toolgate_schema_tokens_full", full, self.tokens_full.clone());
        let promoted = "cl100k_base tokens of promoted schemas";
        r.register("toolgate_schema_tokens_promoted", promoted, self.tokens_promoted.clone());
        self.register_deferral();
        let r = &mut self.registry;
        let memory = "Memory that the shards hold, about";
        let name = "toolgate_shard_memory";
        r.register_with_unit(name, memory, Unit::Bytes, self.shard_memory.clone());
        let shards = "Tenants whose indexes are in memory";
        r.register("toolgate_shards", shards, self.shards.clone());
        let revision = "Highest revision of a catalog whose index is in memory";
        r.register("toolgate_catalog_revision", revision, self.catalog_revision.clone());
        self.encoder.register(r);
        self.memory.register(r);
        self.safety.register(r);
        self.store.register(r);
        self.auth.register(r);
        self.admission.register(r);
    }

    fn register_deferral(&mut self) {
        let r = &mut self.registry;
        let phase1 = "cl100k_base tokens of what prompts list of the catalog, for every Route call";
        r.register("toolgate_summary_tokens", phase1, self.tokens_phase1.clone());
        let saved =
            "cl100k_base tokens that both phases saved, of Route calls for which deferral paid";
        r.register("toolgate_tokens_saved", saved, self.tokens_saved.clone());
        let overspent =
            "cl100k_base tokens that both phases cost above sending every schema, of the others";
        r.register("toolgate_tokens_overspent", overspent, self.tokens_overspent.clone());
        self.usage.register(r);
    }

    /// Creates counters at 0. A counter that first appears as 1 shows no increase in rates.
    fn begin_at_zero(&self) {
        for reason in Rejection::ALL {
            drop(self.rejected.get_or_create(&[("reason", reason.name())]));
        }
        for reason in ["LEXICAL_ONLY", "STALE_CATALOG", "INTENT_TRUNCATED"] {
            drop(self.degraded.get_or_create(&[("reason", reason)]));
        }
    }

    /// Returns the metrics of embedding.
    #[must_use]
    pub fn encoder(&self) -> EncoderMetrics {
        self.encoder.clone()
    }

    /// Returns the metrics of the memory of successful calls.
    #[must_use]
    pub fn memory(&self) -> MemoryMetrics {
        self.memory.clone()
    }

    /// Returns the metrics of registration safety.
    #[must_use]
    pub fn safety(&self) -> SafetyMetrics {
        self.safety.clone()
    }

    /// Returns the metrics of the usage ledger.
    #[must_use]
    pub fn usage(&self) -> UsageMetrics {
        self.usage.clone()
    }

    /// Returns the metrics of the store.
    #[must_use]
    pub fn store(&self) -> StoreMetrics {
        self.store.clone()
    }

    /// Returns the metrics of credentials and certificates.
    #[must_use]
    pub fn auth(&self) -> AuthMetrics {
        self.auth.clone()
    }

    /// Returns the metrics of admission.
    #[must_use]
    pub fn admission(&self) -> AdmissionMetrics {
        self.admission.clone()
    }

    /// Records a finished call. Must be called within the call's span.
    pub fn call(&self, outcome: &CallOutcome) {
        let labels = CallLabels {
            rpc_system_name: "grpc",
            rpc_method: RpcMethod(outcome.method),
            rpc_response_status_code: outcome.code,
            error_type: outcome.reason,
        };
        let (trace, at) = exemplar(sampled_trace().as_ref());
        self.calls.get_or_create(&labels).observe(outcome.seconds, trace, at);
    }

    /// Records the stage times of a Route call in microseconds. Must be called within the call's span.
    pub fn stages(&self, timings: &[(&'static str, u64)]) {
        let of = sampled_trace();
        for (stage, micros) in timings {
            #[expect(clippy::cast_precision_loss, reason = "a stage lasts far less than 2^52 us")]
            let seconds = *micros as f64 / 1e6;
            let (trace, at) = exemplar(of.as_ref());
            self.stages.get_or_create(&[("stage", *stage)]).observe(seconds, trace, at);
        }
    }

    /// Counts a degraded Route answer.
    pub fn degraded(&self, reason: &'static str) {
        self.degraded.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a call that was refused at the edge.
    pub fn rejected(&self, reason: Rejection) {
        self.rejected.get_or_create(&[("reason", reason.name())]).inc();
    }

    /// Counts a verdict of Gate.
    pub fn decision(&self, code: &'static str) {
        self.decisions.get_or_create(&[("code", code)]).inc();
    }

    /// Adds a Route call's tokens: all schemas (`full`), the summaries (`phase1`) and the promoted schemas.
    pub fn tokens(&self, full: u64, phase1: u64, promoted: u64) {
        self.tokens_full.inc_by(full);
        self.tokens_phase1.inc_by(phase1);
        self.tokens_promoted.inc_by(promoted);
        let spent = phase1.saturating_add(promoted);
        // Counters only rise, so savings and overspending have one each.
        self.tokens_saved.inc_by(full.saturating_sub(spent));
        self.tokens_overspent.inc_by(spent.saturating_sub(full));
    }

    /// Returns the metrics as OpenMetrics 1.0 text, with the current figures of the shards.
    #[must_use]
    pub fn expose(&self, shards: ShardsReading) -> String {
        let set = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.shard_memory, shards.bytes);
        set(&self.shards, shards.tenants);
        set(&self.catalog_revision, shards.highest_revision);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String does not fail");
        text
    }
}

/// Returns the exemplar label and time of a sampled trace.
fn exemplar(trace: Option<&String>) -> (Option<TraceLabel>, Option<SystemTime>) {
    let trace = trace.map(|trace_id| TraceLabel { trace_id: trace_id.clone() });
    let at = trace.is_some().then(SystemTime::now);
    (trace, at)
}
