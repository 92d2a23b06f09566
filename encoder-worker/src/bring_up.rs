//! Startup and supervision of the encoder: load, warm up, run the first canary, serve, then watch.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tracing::{debug, info};

use super::canary::{Canary, TEXTS};
use super::config::{CanaryConfig, WorkerConfig};
use super::error::{CanaryError, WorkerError};
use super::lifecycle::Lifecycle;
use super::telemetry::Metrics;
use toolgate_encoder::{EncoderConfig, EncoderHandle, Flow, ModelDescription};

/// Longest time for the warm-up. A device that is not warm by then has failed: compiling a GPU's kernels takes seconds.
const WARM_UP_MAX: Duration = Duration::from_secs(120);

/// Warm-up requests as (texts, words of each). Both short and long: the device was prepared for its largest batches when
/// the model was loaded, and these go the way of callers.
const WARM_UP: [(usize, usize); 6] = [(1, 1), (1, 40), (8, 4), (2, 400), (32, 12), (1, 1)];

/// Starts the encoder and watches it. Returns only when the worker can't continue.
pub(super) async fn and_watch(
    config: &WorkerConfig,
    lifecycle: &Lifecycle,
    metrics: &Metrics,
) -> WorkerError {
    let started = Instant::now();
    let (encoder, canary) = match bring_up(config).await {
        Ok(ready) => ready,
        Err(failure) => return failure,
    };
    lifecycle.serve_with(encoder.clone());
    announce(encoder.model(), started.elapsed());
    let ready = Instant::now();
    let source = watch(&encoder, &canary, config.canary, lifecycle, metrics).await;
    WorkerError::Canary { served: ready.elapsed(), source }
}

async fn bring_up(config: &WorkerConfig) -> Result<(EncoderHandle, Canary), WorkerError> {
    let encoder = load(&config.model_dir, config.encoder.clone(), true).await?;
    warm_up(&encoder).await?;
    let canary = canary(config, &encoder).await?;
    Ok((encoder, canary))
}

fn announce(model: &ModelDescription, took: Duration) {
    info!(
        model = model.name,
        fingerprint = model.fingerprint,
        backend = model.backend,
        start_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "serving"
    );
}

/// Loads the model outside the async threads, because it occupies a core for a while. Only the `served` encoder can get
/// an injected fault.
async fn load(
    dir: &Path,
    encoder: EncoderConfig,
    served: bool,
) -> Result<EncoderHandle, WorkerError> {
    let dir = dir.to_path_buf();
    let load = move || {
        let around = if served { around()? } else { Box::new(|backend| backend) };
        EncoderHandle::spawn_around(&dir, &encoder, around)
            .map_err(|source| WorkerError::Model { folder: dir.display().to_string(), source })
    };
    spawn_blocking(load).await.map_err(|panic| WorkerError::LoadPanic(panic.into()))?
}

type Around = Box<
    dyn FnOnce(Box<dyn toolgate_encoder::Backend>) -> Box<dyn toolgate_encoder::Backend> + Send,
>;

/// Returns the wrapper around the served model: in debug builds, the fault that the environment requests.
fn around() -> Result<Around, WorkerError> {
    #[cfg(debug_assertions)]
    if let Some(fault) = super::fault::from_environment().map_err(WorkerError::Arguments)? {
        return Ok(Box::new(|backend| fault.wrap(backend)));
    }
    Ok(Box::new(|backend| backend))
}

async fn warm_up(encoder: &EncoderHandle) -> Result<(), WorkerError> {
    let until = Instant::now() + WARM_UP_MAX;
    for (texts, words) in WARM_UP {
        let batch = vec!["open issue ".repeat(words); texts];
        let started = Instant::now();
        encoder.embed(batch, Flow::ALONE, Some(until)).await.map_err(WorkerError::WarmUp)?;
        debug!(texts, words, took = ?started.elapsed(), "warm-up");
    }
    Ok(())
}

/// Computes the reference embeddings with an f32 encoder on the CPU, which is dropped afterwards. If the worker itself
/// runs on that, its first answers become the references.
async fn canary(config: &WorkerConfig, encoder: &EncoderHandle) -> Result<Canary, WorkerError> {
    let until = Instant::now() + WARM_UP_MAX;
    let texts = || TEXTS.map(String::from).to_vec();
    let no_answer = |error| WorkerError::FirstCanary(CanaryError::NoAnswer(error));
    let independent = EncoderConfig {
        device: toolgate_encoder::Device::Cpu,
        format: toolgate_encoder::NumberFormat::F32,
        ..config.encoder.clone()
    };
    if encoder.model().backend == "cpu-f32" {
        let first = encoder.embed(texts(), Flow::ALONE, Some(until)).await.map_err(no_answer)?;
        return Ok(Canary::new(first)?);
    }
    let reference = load(&config.model_dir, independent, false).await?;
    let right = reference.embed(texts(), Flow::ALONE, Some(until)).await.map_err(no_answer)?;
    let canary = Canary::new(right)?;
    let first = encoder.embed(texts(), Flow::ALONE, Some(until)).await.map_err(no_answer)?;
    canary.judge(&first)?;
    Ok(canary)
}

/// Runs the canary on its timer, and at once whenever the device failed a call. Returns when the canary fails.
async fn watch(
    encoder: &EncoderHandle,
    canary: &Canary,
    when: CanaryConfig,
    lifecycle: &Lifecycle,
    metrics: &Metrics,
) -> CanaryError {
    loop {
        tokio::select! {
            () = tokio::time::sleep(when.interval) => {}
            () = lifecycle.suspicion.notified() => {}
        }
        let started = Instant::now();
        let lowest = canary.run(encoder, when.timeout).await;
        metrics.canary(lowest.as_ref().ok().copied());
        match lowest {
            Ok(lowest) => debug!(lowest, took = ?started.elapsed(), "canary"),
            Err(failure) => return failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lifecycle::Phase;
    use toolgate_encoder::tiny_model::TinyModel;

    fn config(model: &TinyModel) -> WorkerConfig {
        let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        WorkerConfig {
            listen: local,
            admin_listen: local,
            model_dir: model.path().to_path_buf(),
            encoder: EncoderConfig {
                format: toolgate_encoder::NumberFormat::F32,
                ..Default::default()
            },
            drain: Duration::from_secs(1),
            until_stdin_ends: false,
            canary: CanaryConfig {
                interval: Duration::from_millis(1),
                timeout: Duration::from_secs(20),
            },
        }
    }

    #[tokio::test]
    async fn a_sound_encoder_serves_and_keeps_its_canary_alive() {
        let model = TinyModel::new();
        let lifecycle = Arc::new(Lifecycle::default());
        let metrics = Metrics::new(Arc::clone(&lifecycle));
        let config = config(&model);
        let runs = async {
            lifecycle.reached(Phase::Serving).await;
            while !metrics.expose().contains("toolgate_canary_runs_total 3") {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            failure = and_watch(&config, &lifecycle, &metrics) => panic!("{failure:?}"),
            () = runs => {}
        }
        assert!(metrics.expose().contains("toolgate_canary_failures_total 0"));
    }

    #[tokio::test]
    async fn a_missing_model_is_told() {
        let model = TinyModel::new();
        let lifecycle = Arc::new(Lifecycle::default());
        let metrics = Metrics::new(Arc::clone(&lifecycle));
        let config = WorkerConfig { model_dir: "/nowhere".into(), ..config(&model) };
        let failure = and_watch(&config, &lifecycle, &metrics).await;
        assert_eq!(failure.exit_code(), 3, "{failure:?}");
        assert!(failure.with_causes().contains("/nowhere"), "{}", failure.with_causes());
        assert_eq!(lifecycle.phase(), Phase::Starting);
    }
}
