//! Encoder pool: workers on GPUs, workers on CPUs and the encoder of this process, combined into one encoder. It
//! answers as long as any of them does. Workers are called through the client library. `attempt` handles wrong, late
//! and failed workers, and `health` decides which workers are used.

mod attempt;
mod budget;
mod canaries;
mod comparisons;
mod health;
mod joining;
mod latency;
mod member;
mod reference;
mod roster;
mod watch;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_encoder_client::EncoderOptions;
use tracing::Instrument as _;

pub use reference::{COMPARED_COSINE_MIN, Reference, cosine};

use super::{EmbedFuture, Embedded, Encoder, Flow};
use crate::encoder::EncoderMetrics;
use attempt::Ask;
use budget::RetryBudget;
use comparisons::Comparisons;
use latency::Latency;
use roster::{Roster, connections_by};
use toolgate_config::{PoolConfig, WorkerAddress};
use toolgate_core::error::Error;
use watch::Rounds;

/// Maximum texts in one request to a worker.
const CHUNK: usize = 64;

/// Maximum parallel requests of one call: two for each worker, so that no worker waits for its next request.
const REQUESTS_PER_WORKER: usize = 2;
const REQUESTS_MAX: usize = 16;

/// Sources of addresses. Names in the configuration have the numbers after `LISTED`.
const LOCAL: usize = 0;
const LISTED: usize = 1;

/// Pool of encoders that acts as one encoder. Dropping it ends its tasks.
pub struct EncoderPool {
    inner: Arc<Inner>,
    _stop: DropGuard,
}

struct Inner {
    roster: Arc<Roster>,
    in_process: Option<Arc<dyn Encoder>>,
    reference: Arc<Reference>,
    comparisons: Option<Comparisons>,
    budget: RetryBudget,
    latency: Latency,
    hedge: bool,
    attempt_timeout: Duration,
    metrics: EncoderMetrics,
}

/// Addresses of worker processes that this server runs. They change when a process is restarted.
pub type LocalWorkers = tokio::sync::watch::Receiver<Vec<String>>;

impl EncoderPool {
    /// Creates a pool. Workers must agree with `reference`, and some of their answers are compared with those of
    /// `comparer`. `in_process` is the encoder of this process, if there is one. Needs a tokio runtime.
    #[must_use]
    pub fn new(
        config: &PoolConfig,
        reference: Reference,
        in_process: Option<Arc<dyn Encoder>>,
        comparer: Option<Arc<dyn Encoder>>,
        metrics: EncoderMetrics,
    ) -> Self {
        let reference = Arc::new(reference);
        let rounds = Rounds::every(config.health_interval, config.attempt_timeout);
        let options = options_of(config);
        let roster = Roster::new(Arc::clone(&reference), rounds, options, metrics.clone());
        let roster = Arc::new(roster);
        let stop = CancellationToken::new();
        follow(&config.workers, &roster, &stop);
        let comparer = comparer.filter(|_| config.compare_one_in > 0);
        let comparisons = comparer.map(|encoder| {
            let one_in = config.compare_one_in;
            let reference = Arc::clone(&reference);
            Comparisons::start(one_in, encoder, reference, metrics.clone(), &stop)
        });
        let inner = Inner {
            roster,
            in_process,
            reference,
            comparisons,
            budget: RetryBudget::new(Instant::now()),
            latency: Latency::new(),
            hedge: config.hedge,
            attempt_timeout: config.attempt_timeout,
            metrics,
        };
        Self { inner: Arc::new(inner), _stop: stop.drop_guard() }
    }

    /// Adds these workers, and follows their addresses until the sender of `workers` is dropped.
    pub fn add_local(&self, mut workers: LocalWorkers) {
        let roster = Arc::downgrade(&self.inner.roster);
        tokio::spawn(async move {
            loop {
                let Some(roster) = roster.upgrade() else { return };
                roster.replace(LOCAL, &workers.borrow_and_update());
                drop(roster);
                if workers.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    /// Returns the number of workers in use.
    #[must_use]
    pub fn workers_in_use(&self) -> usize {
        self.inner.roster.serving()
    }

    /// Splits many texts into requests that run in parallel.
    async fn embed_many(
        &self,
        texts: Vec<String>,
        flow: Flow,
        deadline: Option<Instant>,
    ) -> Result<Vec<Embedded>, Error> {
        let at_once = (self.workers_in_use() * REQUESTS_PER_WORKER).clamp(1, REQUESTS_MAX);
        let mut waiting = texts.chunks(CHUNK).map(<[String]>::to_vec).enumerate();
        let mut parts = vec![Vec::new(); texts.len().div_ceil(CHUNK)];
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < at_once
                && let Some((part, texts)) = waiting.next()
            {
                let inner = Arc::clone(&self.inner);
                let asking =
                    async move { (part, inner.answer(&Ask::new(texts, flow, deadline)).await) };
                under_way.spawn(asking.in_current_span());
            }
            let Some(joined) = under_way.join_next().await else { break };
            let (part, embedded) = joined.map_err(Error::internal)?;
            parts[part] = embedded?;
        }
        Ok(parts.into_iter().flatten().collect())
    }
}

fn options_of(config: &PoolConfig) -> EncoderOptions {
    let by_cores = || connections_by(available_parallelism().map_or(1, NonZeroUsize::get));
    let connections = config.connections.unwrap_or_else(by_cores);
    // Each server has its own.
    let caller = fastrand::u64(1..);
    EncoderOptions { connections, caller, ..EncoderOptions::default() }
}

/// Adds the configured workers. Listed addresses are permanent. A name is looked up again and again until `stop`.
fn follow(workers: &[WorkerAddress], roster: &Arc<Roster>, stop: &CancellationToken) {
    let mut listed = Vec::new();
    for (i, worker) in workers.iter().enumerate() {
        match worker {
            WorkerAddress::One(address) => listed.push(address.clone()),
            WorkerAddress::Behind { name, port } => {
                let source = LISTED + 1 + i;
                let rounds = watch::follow_name(Arc::clone(roster), source, name.clone(), *port);
                tokio::spawn(stop.clone().run_until_cancelled_owned(rounds));
            }
        }
    }
    roster.replace(LISTED, &listed);
}

impl Encoder for EncoderPool {
    fn fingerprint(&self) -> &str {
        &self.inner.reference.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.inner.reference.dimensions
    }

    fn embed(&self, texts: Vec<String>, flow: Flow, deadline: Option<Instant>) -> EmbedFuture<'_> {
        Box::pin(async move {
            match texts.len() {
                0 => Ok(Vec::new()),
                1..=CHUNK => self.inner.answer(&Ask::new(texts, flow, deadline)).await,
                _ => self.embed_many(texts, flow, deadline).await,
            }
        })
    }
}
