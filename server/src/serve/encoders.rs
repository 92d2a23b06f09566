//! The encoders of the server: the model in this process, the pool of workers, and the worker processes that this
//! server starts.

use std::sync::Arc;

use toolgate_encoder::{Device, EncoderConfig as DeviceConfig, EncoderHandle, LoadError, Prompts};
use toolgate_telemetry::TraceOptions;
use tracing::info;

use super::ServeError;
use crate::workers::{FoundGpus, SupervisorLimits, VISIBLE_GPUS, WorkerCommand, Workers};
use toolgate_config::{Config, EncoderConfig, Gpus};
use toolgate_core::error::Error;
use toolgate_core::tokens;
use toolgate_routing::encoder::EncoderMetrics;
use toolgate_routing::encoder::pool::Reference;
use toolgate_routing::encoder::{Encoder, EncoderPool, Encoders, Prefixed, Prefixes};

/// The encoders, and the worker processes behind them.
pub(super) struct Embedding {
    /// Encoders that the plane uses.
    pub(super) encoders: Encoders,
    workers: Option<Workers>,
}

impl Embedding {
    /// Loads the model and starts the workers, which join when they are up.
    pub(super) async fn start(
        whole: &Config,
        metrics: &EncoderMetrics,
    ) -> Result<Self, ServeError> {
        let mut config = whole.encoder.clone();
        if matches!(config.pool.gpus, Gpus::Auto | Gpus::Require) {
            let visible = std::env::var(VISIBLE_GPUS).ok();
            let found = FoundGpus::search(visible.as_deref()).await;
            let local = std::mem::take(&mut config.pool.local);
            config.pool.local = with_gpus(local, config.pool.gpus, found)?;
        }
        let config = &config;
        let prefixes = prefixes(config)?;
        let handle = load(config).await?;
        let reference = if config.pool.is_empty() {
            Reference::without_workers(&handle)
        } else {
            Reference::of(&handle, &prefixes).await.map_err(ServeError::Internal)?
        };
        if config.in_process {
            metrics.show_in_process(handle.clone());
        }
        // Answers of workers are checked against the model, even if this process embeds nothing for callers.
        let handle: Arc<dyn Encoder> = Arc::new(handle);
        let in_process = config.in_process.then(|| Arc::clone(&handle));
        let comparer = (config.pool.compare_one_in > 0).then_some(handle);
        let pool = EncoderPool::new(&config.pool, reference, in_process, comparer, metrics.clone());
        let workers = start_workers(config, whole.telemetry.traces.as_ref(), metrics)?;
        if let Some(workers) = &workers {
            pool.add_local(workers.addresses());
        }
        let pool: Arc<dyn Encoder> = Arc::new(pool);
        let encoders = Encoders::new(&pool, &prefixes, config.cache_memory, metrics.clone());
        Ok(Self { encoders, workers })
    }

    /// Ends the worker processes.
    pub(super) async fn stop(self) {
        if let Some(workers) = self.workers {
            workers.stop().await;
        }
    }
}

/// Returns the devices for workers: `local` and each GPU that was found to work. Logs which these are, or why there is
/// none.
fn with_gpus(
    mut local: Vec<Device>,
    gpus: Gpus,
    found: FoundGpus,
) -> Result<Vec<Device>, ServeError> {
    let problems = found.problems.join("; ");
    if found.usable.is_empty() {
        if gpus == Gpus::Require {
            return Err(ServeError::NoGpu(problems));
        }
        info!(why = problems, "no GPU is used: embeddings are made on the CPU");
        return Ok(local);
    }
    let names: Vec<_> = found.usable.iter().map(ToString::to_string).collect();
    info!(gpus = names.join(","), problems, "an encoder worker starts on each GPU that works");
    local.retain(|device| !found.usable.contains(device));
    Ok([found.usable, local].concat())
}

fn start_workers(
    config: &EncoderConfig,
    spans: Option<&TraceOptions>,
    metrics: &EncoderMetrics,
) -> Result<Option<Workers>, ServeError> {
    if config.pool.local.is_empty() {
        return Ok(None);
    }
    let visible = std::env::var(VISIBLE_GPUS).ok();
    let on = |device: &Device| {
        let visible = visible.as_deref();
        let command = WorkerCommand::on(*device, visible, &config.model_dir, &config.adapter)?;
        Ok::<_, std::io::Error>(command.with_spans(spans))
    };
    let commands: Result<Vec<_>, _> = config.pool.local.iter().map(on).collect();
    let commands = commands.map_err(|error| ServeError::Internal(Error::internal(error)))?;
    Ok(Some(Workers::start(commands, SupervisorLimits::default(), metrics)))
}

/// Loads the encoders of both sides of a search (passages, then queries), without any worker. Evaluations use them.
pub(crate) async fn load_sides(config: &EncoderConfig) -> Result<(Prefixed, Prefixed), ServeError> {
    let prefixes = prefixes(config)?;
    let encoder: Arc<dyn Encoder> = Arc::new(load(config).await?);
    let passages = Prefixed::new(Arc::clone(&encoder), &prefixes.passage);
    Ok((passages, Prefixed::new(encoder, &prefixes.query)))
}

/// Returns the prefixes of the configuration, or those of the model where the configuration has none.
fn prefixes(config: &EncoderConfig) -> Result<Prefixes, ServeError> {
    let prompts = Prompts::read(&config.model_dir);
    let prompts = prompts.map_err(|error| unloadable(config, error))?;
    Ok(Prefixes {
        query: config.query_prefix.clone().unwrap_or(prompts.query),
        passage: config.passage_prefix.clone().unwrap_or(prompts.passage),
    })
}

/// Loads the model and warms it up on a blocking thread, because both keep a core busy for a while.
async fn load(config: &EncoderConfig) -> Result<EncoderHandle, ServeError> {
    let device = match config.device {
        // GPUs are for workers. What encodes where there are none, or where they fail, must not fail with a GPU.
        Device::Auto => Device::Cpu,
        device => device,
    };
    let device = DeviceConfig {
        queue_capacity: config.queue_capacity,
        max_batch_tokens: Some(config.max_batch_tokens),
        threads: config.threads,
        device,
        format: config.dtype,
        adapter: config.adapter.clone(),
    };
    let config = config.clone();
    let load = move || {
        tokens::warm_up();
        let handle = EncoderHandle::spawn(&config.model_dir, &device);
        handle.map_err(|error| unloadable(&config, error))
    };
    let joined = tokio::task::spawn_blocking(load).await;
    joined.map_err(|error| ServeError::Internal(Error::internal(error)))?
}

/// Checks that the model is there, without loading it.
pub(crate) fn check_model(config: &EncoderConfig) -> Result<(), ServeError> {
    if config.model_dir.join("config.json").exists() {
        return Ok(());
    }
    let folder = config.model_dir.display().to_string();
    Err(ServeError::NoModel { folder, model: config.model })
}

fn unloadable(config: &EncoderConfig, source: LoadError) -> ServeError {
    if let Err(missing) = check_model(config) {
        return missing;
    }
    ServeError::Model {
        folder: config.model_dir.display().to_string(),
        model: config.model,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: [Device; 2] = [Device::Cuda(1), Device::Cpu];

    fn found(usable: &[usize], problems: &[&str]) -> FoundGpus {
        FoundGpus {
            usable: usable.iter().copied().map(Device::Cuda).collect(),
            problems: problems.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn gpus_that_work_have_a_worker_each() {
        for gpus in [Gpus::Auto, Gpus::Require] {
            let devices = with_gpus(LOCAL.into(), gpus, found(&[0, 1], &["cuda:2: too old"]));
            let devices = devices.expect("there are some");
            assert_eq!(devices, [Device::Cuda(0), Device::Cuda(1), Device::Cpu]);
        }
    }

    #[test]
    fn without_one_auto_goes_on_and_require_does_not() {
        let none = || found(&[], &["no driver", "or so"]);
        let devices = with_gpus(LOCAL.into(), Gpus::Auto, none()).expect("the CPU embeds");
        assert_eq!(devices, LOCAL);
        let refused = with_gpus(LOCAL.into(), Gpus::Require, none());
        let text = refused.expect_err("there is none").to_string();
        assert!(text.contains("encoder.gpus") && text.contains("no driver; or so"), "{text}");
    }
}
