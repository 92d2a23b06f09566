//! Metrics of the proxy, in the format OpenMetrics 1.0. No label has a word of a user's; names of models are bounded in number.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolgate_llm::strategy::Api;

/// Content type of the exposition text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Most models that have labels of their own.
const MODELS_MAX: usize = 64;

/// Longest name of a model in a label, in bytes.
const MODEL_NAME_MAX: usize = 128;

/// Label of all other models.
const OTHER: &str = "other";

/// Bounds of the histogram, in seconds. Requests with new tools wait 150 ms, and an alert begins at the next bound.
const BOUNDS: [f64; 12] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.25, 1.0, 10.0];

type Labels<const N: usize> = [(&'static str, String); N];
type Times = Family<Labels<1>, Histogram, fn() -> Histogram>;

/// Outcome of a chat request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done<'a> {
    pub(crate) api: Api,
    pub(crate) model: &'a str,
    /// Name of the strategy.
    pub(crate) strategy: &'static str,
    /// Reason for which it was sent as it came; else empty.
    pub(crate) reason: &'static str,
}

/// Metrics of one proxy.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    models: Mutex<HashSet<String>>,
    requests: Family<Labels<4>, Counter>,
    deferred: Family<Labels<1>, Counter>,
    instead: Family<Labels<1>, Counter>,
    hop_tokens: Family<Labels<1>, Counter>,
    tokens: Family<Labels<2>, Counter>,
    spent: Family<Labels<1>, Counter<f64, AtomicU64>>,
    searches: Counter,
    hops: Family<Labels<1>, Counter>,
    gated: Family<Labels<1>, Counter>,
    refused: Family<Labels<1>, Counter>,
    added: Times,
    open: Gauge,
    bodies: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolgate_llm");
        let added: Times = Family::new_with_constructor(|| Histogram::new(BOUNDS));
        let metrics = Self {
            registry: Registry::default(),
            models: Mutex::default(),
            requests: Family::default(),
            deferred: Family::default(),
            instead: Family::default(),
            hop_tokens: Family::default(),
            tokens: Family::default(),
            spent: Family::default(),
            searches: Counter::default(),
            hops: Family::default(),
            gated: Family::default(),
            refused: Family::default(),
            added,
            open: Gauge::default(),
            bodies: Gauge::default(),
        };
        registry.register("requests", "Chat requests", metrics.requests.clone());
        let about = "Computed tokens of definitions that were deferred";
        registry.register("deferred_tokens", about, metrics.deferred.clone());
        let about = "Computed tokens that were sent in the place of deferred definitions";
        registry.register("instead_tokens", about, metrics.instead.clone());
        let about = "Computed tokens of further requests of turns that hosts did not see";
        registry.register("hop_tokens", about, metrics.hop_tokens.clone());
        let about = "Tokens of rewritten requests as the provider counted them";
        registry.register("provider_tokens", about, metrics.tokens.clone());
        let about = "Price of rewritten requests in US dollars, by the provider's usage";
        registry.register("cost_usd", about, metrics.spent.clone());
        registry.register("searches", "Searches that were answered", metrics.searches.clone());
        let about = "Further requests of turns that hosts did not see";
        registry.register("hops", about, metrics.hops.clone());
        let about = "Calls of models by what Gate said of them";
        registry.register("gated_calls", about, metrics.gated.clone());
        let about = "Requests of hosts that were refused here";
        registry.register("refused", about, metrics.refused.clone());
        let about = "Time from a chat request's last byte here to its first to the provider";
        registry.register("added_seconds", about, metrics.added.clone());
        registry.register("requests_open", "Requests under way", metrics.open.clone());
        let about = "Bytes of requests in memory, as they came";
        registry.register("request_bytes", about, metrics.bodies.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Returns the exposition text.
    pub(crate) fn exposed(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _written = encode(&mut text, &self.registry);
        text
    }

    /// Counts a request.
    pub(crate) fn done(&self, done: Done<'_>) {
        let labels = [
            ("api", done.api.name().to_owned()),
            ("model", self.model(done.model)),
            ("strategy", done.strategy.to_owned()),
            ("reason", done.reason.to_owned()),
        ];
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts what a rewritten request did not carry, and what it carried in its place.
    pub(crate) fn rewritten(&self, model: &str, deferred: u64, instead: u64) {
        let labels = [("model", self.model(model))];
        self.deferred.get_or_create(&labels).inc_by(deferred);
        self.instead.get_or_create(&labels).inc_by(instead);
    }

    /// Counts the tokens of a further request of a turn.
    pub(crate) fn hop_tokens(&self, model: &str, tokens: u64) {
        self.hop_tokens.get_or_create(&[("model", self.model(model))]).inc_by(tokens);
    }

    /// Counts tokens of the provider's.
    pub(crate) fn used(&self, model: &str, kind: &'static str, tokens: u64) {
        let labels = [("model", self.model(model)), ("kind", kind.to_owned())];
        self.tokens.get_or_create(&labels).inc_by(tokens);
    }

    /// Counts what requests cost, in US dollars.
    pub(crate) fn spent(&self, model: &str, dollars: f64) {
        self.spent.get_or_create(&[("model", self.model(model))]).inc_by(dollars);
    }

    /// Counts a further request of a turn, which answered so many searches.
    pub(crate) fn hop(&self, reason: &'static str, searches: u64) {
        self.hops.get_or_create(&[("reason", reason.to_owned())]).inc();
        self.searches.inc_by(searches);
    }

    /// Counts a call that was judged.
    pub(crate) fn gated(&self, outcome: &str) {
        self.gated.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    /// Counts a request that was refused here.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// Notes what the proxy added to a request's time.
    pub(crate) fn added(&self, strategy: &'static str, time: Duration) {
        let times = self.added.get_or_create(&[("strategy", strategy.to_owned())]);
        times.observe(time.as_secs_f64());
    }

    /// Counts a request that is under way, until what it returns is dropped.
    pub(crate) fn opened(&self) -> OpenRequest {
        self.open.inc();
        OpenRequest(self.open.clone())
    }

    /// Notes the bytes of requests in memory.
    pub(crate) fn bodies(&self, bytes: usize) {
        self.bodies.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Returns the label of a model.
    fn model(&self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        let mut models = self.models.lock();
        if models.contains(name) {
            return name.to_owned();
        }
        if models.len() >= MODELS_MAX || name.len() > MODEL_NAME_MAX {
            return OTHER.to_owned();
        }
        models.insert(name.to_owned());
        name.to_owned()
    }
}

/// Request that is under way.
#[derive(Debug)]
pub(crate) struct OpenRequest(Gauge);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_bounded_in_number_and_length() {
        let metrics = Metrics::default();
        let done = |model: &str| {
            metrics.done(Done { api: Api::Anthropic, model, strategy: "pass", reason: "late" });
        };
        done(&"x".repeat(MODEL_NAME_MAX + 1));
        for number in 0..2 * MODELS_MAX {
            done(&format!("m{number}"));
        }
        done("m0");
        let text = metrics.exposed();
        let line = |model: &str, count: u64| {
            format!(
                "toolgate_llm_requests_total{{api=\"anthropic\",model=\"{model}\",strategy=\"pass\",reason=\"late\"}} {count}"
            )
        };
        assert!(text.contains(&line("m0", 2)), "{text}");
        assert!(text.contains(&line(OTHER, 1 + MODELS_MAX as u64)), "{text}");
        assert_eq!(text.matches("toolgate_llm_requests_total{").count(), MODELS_MAX + 1);
    }

    #[test]
    fn requests_are_open_until_they_end() {
        let metrics = Metrics::default();
        let open = metrics.opened();
        assert!(metrics.exposed().contains("toolgate_llm_requests_open 1"));
        drop(open);
        assert!(metrics.exposed().contains("toolgate_llm_requests_open 0"));
    }
}
