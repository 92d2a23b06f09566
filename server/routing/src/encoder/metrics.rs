//! Metrics of embedding: workers by address, retries, hedges and the cache. Clones share their counters.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use toolgate_encoder::{EncoderCollector, EncoderHandle};

use toolgate_core::metrics::{BUCKETS, Histograms, Label};

/// Results of a request to a worker.
const RESULTS: [&str; 7] = ["ok", "busy", "late", "broken", "garbage", "refused", "other_model"];

/// Results for which a worker is taken out of use.
const EJECTED_FOR: [&str; 5] = ["late", "broken", "garbage", "other_model", "different"];

/// States of a worker in the pool.
const STATES: [&str; 4] = ["new", "serving", "ejected", "other_model"];

/// Labels for a worker and the result of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultOf {
    worker: String,
    result: &'static str,
}

/// Labels for a worker and its state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateOf {
    worker: String,
    state: &'static str,
}

/// Label for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Worker {
    worker: String,
}

/// Metrics of the encoder, its pool of workers and the cache.
#[derive(Clone, Debug)]
pub struct EncoderMetrics {
    requests: Family<ResultOf, Counter>,
    states: Family<StateOf, Gauge>,
    ejections: Family<ResultOf, Counter>,
    durations: Histograms<Worker>,
    outstanding: Family<Worker, Gauge>,
    answered: Family<Label, Counter>,
    joined: Counter,
    join_waits: Histograms<Label>,
    failovers: Family<Label, Counter>,
    hedges: Family<Label, Counter>,
    over_budget: Family<Label, Counter>,
    compared: Family<Label, Counter>,
    cache: Family<Label, Counter>,
    cache_memory: Gauge,
    restarts: Family<Worker, Counter>,
    in_process: EncoderCollector,
}

impl Default for EncoderMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            requests: Family::default(),
            states: Family::default(),
            ejections: Family::default(),
            durations: Family::new_with_constructor(histogram),
            outstanding: Family::default(),
            answered: Family::default(),
            joined: Counter::default(),
            join_waits: Family::new_with_constructor(histogram),
            failovers: Family::default(),
            hedges: Family::default(),
            over_budget: Family::default(),
            compared: Family::default(),
            cache: Family::default(),
            cache_memory: Gauge::default(),
            restarts: Family::default(),
            in_process: EncoderCollector::default(),
        }
    }
}

impl EncoderMetrics {
    /// Registers all metrics.
    pub fn register(&self, r: &mut Registry) {
        let help = "Requests to a worker, by how they ended";
        r.register("toolgate_encoder_worker_requests", help, self.requests.clone());
        let help = "1 for the state that a worker is in";
        r.register("toolgate_encoder_worker_state", help, self.states.clone());
        let help = "Times that a worker was taken out of use, by what it did";
        r.register("toolgate_encoder_worker_ejections", help, self.ejections.clone());
        let name = "toolgate_encoder_worker_duration";
        let help = "Time that a worker took to answer";
        r.register_with_unit(name, help, Unit::Seconds, self.durations.clone());
        let help = "Tokens, estimated, of requests that a worker has not answered yet";
        r.register("toolgate_encoder_worker_outstanding_tokens", help, self.outstanding.clone());
        let help = "Times that a worker process of this server was started again";
        r.register("toolgate_encoder_worker_restarts", help, self.restarts.clone());
        let help = "Requests for embeddings, by who answered";
        r.register("toolgate_embed_answered", help, self.answered.clone());
        let help = "Requests of callers whose texts went to a worker on a GPU together with those of others";
        r.register("toolgate_embed_joined", help, self.joined.clone());
        let name = "toolgate_embed_join_wait";
        let help =
            "Time that a short request waited for its turn at a worker on a GPU, by how that ended";
        r.register_with_unit(name, help, Unit::Seconds, self.join_waits.clone());
        let help = "Requests that went on after a worker failed them, by where to";
        r.register("toolgate_embed_failover", help, self.failovers.clone());
        let help =
            "Requests that were also sent to a second one because the first was late, by who won";
        r.register("toolgate_embed_hedges", help, self.hedges.clone());
        let help = "Second attempts that the budget did not allow";
        r.register("toolgate_embed_over_budget", help, self.over_budget.clone());
        let help = "Answers of workers compared with this process, by what came of it";
        r.register("toolgate_embed_compared", help, self.compared.clone());
        let help = "Intents looked up in the embedding cache";
        r.register("toolgate_embed_cache_lookups", help, self.cache.clone());
        let name = "toolgate_embed_cache_memory";
        let help = "Memory that cached embeddings take, about";
        r.register_with_unit(name, help, Unit::Bytes, self.cache_memory.clone());
        r.register_collector(Box::new(self.in_process.clone()));
        self.begin_at_zero();
    }

    /// Creates the counters with the value 0. A counter that first appears as 1 shows no rise in a rate.
    fn begin_at_zero(&self) {
        for to in ["worker", "in_process"] {
            drop(self.failovers.get_or_create(&[("to", to)]));
        }
        for winner in ["first", "second", "none"] {
            drop(self.hedges.get_or_create(&[("winner", winner)]));
        }
        for attempt in ["retry", "hedge"] {
            drop(self.over_budget.get_or_create(&[("attempt", attempt)]));
        }
        for result in ["same", "different", "skipped"] {
            drop(self.compared.get_or_create(&[("result", result)]));
        }
        for end in ["sent", "left"] {
            drop(self.join_waits.get_or_create(&[("end", end)]));
        }
        for tier in ["gpu", "cpu", "in_process", "none"] {
            drop(self.answered.get_or_create(&[("tier", tier)]));
        }
        for result in ["hit", "miss", "shared"] {
            drop(self.cache.get_or_create(&[("result", result)]));
        }
    }

    /// Returns true if the encoder of this process has stopped for good.
    #[must_use]
    pub fn in_process_stopped(&self) -> bool {
        self.in_process.has_stopped()
    }

    /// Adds the metrics of the encoder of this process.
    pub fn show_in_process(&self, encoder: EncoderHandle) {
        self.in_process.show(encoder);
    }

    /// Returns the metrics of the worker at `address`.
    #[must_use]
    pub fn worker(&self, address: &str) -> WorkerMetrics {
        let labels = Worker { worker: address.to_owned() };
        let metrics = WorkerMetrics {
            address: address.to_owned(),
            duration: self.durations.get_or_create_owned(&labels),
            outstanding: self.outstanding.get_or_create_owned(&labels),
            all: self.clone(),
        };
        for result in RESULTS {
            drop(self.requests.get_or_create(&metrics.result(result)));
        }
        for result in EJECTED_FOR {
            drop(self.ejections.get_or_create(&metrics.result(result)));
        }
        metrics
    }

    /// Counts a request that `tier` answered. `none` means that there was no answer.
    pub fn answered(&self, tier: &'static str) {
        self.answered.get_or_create(&[("tier", tier)]).inc();
    }

    /// Counts a request that went on to `to` after a worker failed.
    pub fn failover(&self, to: &'static str) {
        self.failovers.get_or_create(&[("to", to)]).inc();
    }

    /// Counts a request that was sent to two encoders, by the one whose answer was used.
    pub fn hedge(&self, winner: &'static str) {
        self.hedges.get_or_create(&[("winner", winner)]).inc();
    }

    /// Counts a second attempt, `retry` or `hedge`, that the budget did not allow.
    pub fn over_budget(&self, attempt: &'static str) {
        self.over_budget.get_or_create(&[("attempt", attempt)]).inc();
    }

    /// Counts a comparison of a worker's answer with this process. `skipped` means that this process was too busy.
    pub fn compared(&self, result: &'static str) {
        self.compared.get_or_create(&[("result", result)]).inc();
    }

    /// Counts intents looked up with a result: `hit`, `miss`, or `shared` with a call in progress.
    pub fn cache_lookups(&self, result: &'static str, intents: u64) {
        self.cache.get_or_create(&[("result", result)]).inc_by(intents);
    }

    /// Sets the bytes of the cache.
    pub fn cache_memory(&self, bytes: u64) {
        self.cache_memory.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Creates the restart counter of a worker process, which is named by its device.
    pub fn kept(&self, worker: &str) {
        drop(self.restarts.get_or_create(&Worker { worker: worker.to_owned() }));
    }

    /// Counts a restart of a worker process, which is named by its device.
    pub fn restarted(&self, worker: &str) {
        self.restarts.get_or_create(&Worker { worker: worker.to_owned() }).inc();
    }
}

/// Metrics of one worker. They are removed when this is dropped, because addresses change over time.
#[derive(Debug)]
pub struct WorkerMetrics {
    address: String,
    duration: Histogram,
    outstanding: Gauge,
    all: EncoderMetrics,
}

impl WorkerMetrics {
    /// Counts requests of callers whose texts go to the worker together. A single one is not counted.
    pub fn joined(&self, requests: usize) {
        if requests > 1 {
            self.all.joined.inc_by(requests as u64);
        }
    }

    /// Records the time, in seconds, that a caller's request waited until it was `sent`, alone or together with others, or
    /// until its caller had `left`.
    pub fn waited(&self, end: &'static str, seconds: f64) {
        self.all.join_waits.get_or_create(&[("end", end)]).observe(seconds);
    }

    fn result(&self, result: &'static str) -> ResultOf {
        ResultOf { worker: self.address.clone(), result }
    }

    fn in_state(&self, state: &'static str) -> StateOf {
        StateOf { worker: self.address.clone(), state }
    }

    /// Counts a request by its result.
    pub fn request(&self, result: &'static str) {
        self.all.requests.get_or_create(&self.result(result)).inc();
    }

    /// Records the time that an answer took, in seconds.
    pub fn took(&self, seconds: f64) {
        self.duration.observe(seconds);
    }

    /// Sets the estimated tokens that were sent and not answered yet.
    pub fn outstanding(&self, tokens: u64) {
        self.outstanding.set(i64::try_from(tokens).unwrap_or(i64::MAX));
    }

    /// Sets the worker's state.
    pub fn state(&self, state: &'static str) {
        for known in STATES {
            let is = i64::from(known == state);
            self.all.states.get_or_create(&self.in_state(known)).set(is);
        }
    }

    /// Counts that the worker was taken out of use.
    pub fn ejected(&self, result: &'static str) {
        self.all.ejections.get_or_create(&self.result(result)).inc();
    }
}

impl Drop for WorkerMetrics {
    fn drop(&mut self) {
        for state in STATES {
            self.all.states.remove(&self.in_state(state));
        }
        for result in RESULTS {
            self.all.requests.remove(&self.result(result));
        }
        for result in EJECTED_FOR {
            self.all.ejections.remove(&self.result(result));
        }
        let labels = Worker { worker: self.address.clone() };
        self.all.durations.remove(&labels);
        self.all.outstanding.remove(&labels);
    }
}
