//! Pool over workers, and requests to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_app::telemetry::{Metrics, ShardsReading};
use toolgate_config::{Gpus, PoolConfig, WorkerAddress};
use toolgate_core::error::Error;
use toolgate_routing::encoder::pool::Reference;
use toolgate_routing::encoder::{Encoder, EncoderPool, Flow, Prefixes};

use crate::here::{Here, embedding};
use crate::worker::Worker;

/// Time limit that is longer than anything in these tests takes, even on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

pub struct Setup {
    pub pool: Arc<EncoderPool>,
    pub here: Arc<Here>,
    pub metrics: Metrics,
}

pub fn config(workers: &[&Worker]) -> PoolConfig {
    let address = |worker: &&Worker| WorkerAddress::One(worker.address.to_string());
    PoolConfig {
        workers: workers.iter().map(address).collect(),
        gpus: Gpus::First(0),
        local: Vec::new(),
        connections: None,
        attempt_timeout: Duration::from_secs(1),
        hedge: false,
        health_interval: Duration::from_millis(100),
        compare_one_in: 0,
    }
}

/// Returns settings under which a pause of a busy machine is no fault of a worker: once it is in use, no more checks come.
pub fn patient(workers: &[&Worker]) -> PoolConfig {
    PoolConfig { attempt_timeout: SOON, health_interval: SOON * 10, ..config(workers) }
}

impl Setup {
    /// Creates a pool with the in-process encoder, and waits until all workers are in use.
    pub async fn of(workers: &[&Worker]) -> Self {
        Self::with(config(workers), workers.len(), true).await
    }

    pub async fn with(config: PoolConfig, in_use: usize, in_process: bool) -> Self {
        let here = Here::new();
        let metrics = Metrics::default();
        let reference =
            Reference::of(here.as_ref(), &Prefixes::default()).await.expect("a reference");
        let comparer = Arc::clone(&here) as Arc<dyn Encoder>;
        let encoder = in_process.then(|| Arc::clone(&comparer));
        let pool = EncoderPool::new(&config, reference, encoder, Some(comparer), metrics.encoder());
        let pool = Arc::new(pool);
        let setup = Self { pool, here, metrics };
        setup.until_in_use(in_use).await;
        setup.here.take_count();
        setup
    }

    /// Waits until this number of workers is in use, and returns the waiting time.
    pub async fn until_in_use(&self, workers: usize) -> Duration {
        let began = Instant::now();
        let what = format!("{workers} workers are in use");
        self.until(&what, || self.pool.workers_in_use() == workers).await;
        began.elapsed()
    }

    /// Waits until `is_so`, which `what` says in words.
    pub async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            let in_use = self.pool.workers_in_use();
            assert!(began.elapsed() < SOON, "not yet: {what} ({in_use} are)");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Embeds one text within `within`, and checks the answer.
    pub async fn embed_within(&self, text: &str, within: Duration) -> Result<(), Error> {
        let deadline = Some(Instant::now() + within);
        let embedded = self.pool.embed(vec![text.to_owned()], Flow::ALONE, deadline).await?;
        assert_eq!(embedded.len(), 1);
        assert_eq!(embedded[0].vector, embedding(text), "{text}");
        Ok(())
    }

    pub async fn embed(&self, text: &str) -> Result<(), Error> {
        self.embed_within(text, Duration::from_secs(20)).await
    }

    /// Returns one sample of the metrics, or 0 if it is absent.
    pub fn metric(&self, sample: &str) -> f64 {
        let text = self.metrics.expose(ShardsReading::default());
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        line.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }
}
