//! The encoders of the server: the model in this process, the pool of workers, and the worker processes that this
//! server starts.

use std::sync::Arc;

use toolgate_encoder::{Device, EncoderConfig as DeviceConfig, EncoderHandle, LoadError, Prompts};
use toolgate_telemetry::TraceOptions;

use super::ServeError;
use crate::workers::{SupervisorLimits, VISIBLE_GPUS, WorkerCommand, Workers};
use toolgate_config::{Config, EncoderConfig};
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
        let config = &whole.encoder;
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
