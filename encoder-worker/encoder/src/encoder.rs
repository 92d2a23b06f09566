//! The encoder as callers see it: a cheap handle in front of one thread that owns the tokenizer and
//! the model. Dropping the last handle stops the thread.

mod batch_budget;
mod batch_spans;
pub mod collector;
mod device_loop;
mod distribution;
mod embed_error;
mod request;
mod stats;
#[cfg(test)]
mod tests;
mod turns;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;

pub use collector::EncoderCollector;
pub use distribution::{Distribution, RANGES};
pub use embed_error::EmbedError;
pub use stats::EncoderStats;
pub use turns::Flow;

use crate::adapter::AdapterChoice;
use crate::backend::{Backend, Batch};
use crate::device::{Device, NumberFormat};
use crate::giving_way::{Behind, give_way};
use crate::load_backend::load_backend;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::tokenize::TextTokenizer;
use device_loop::DeviceLoop;
use request::{LeftAt, Request, Waiting, Wanted, WantedTurn};
use stats::Counters;

/// How an encoder queues, batches and uses the machine.
#[derive(Debug, Clone)]
pub struct EncoderConfig {
    /// Requests that may wait or run at once; one more is refused with [`EmbedError::QueueFull`].
    pub queue_capacity: usize,
    /// Tokens that one batch holds at most (a single longer text still runs, alone); fewer where the device takes
    /// long for so many, so that a short request passes a long one soon.
    pub max_batch_tokens: usize,
    /// Threads that one batch may use; `None` means one per core.
    pub threads: Option<NonZeroUsize>,
    /// What to run on.
    pub device: Device,
    /// How weights are kept and multiplied.
    pub format: NumberFormat,
    /// What is merged into the weights.
    pub adapter: AdapterChoice,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            queue_capacity: 1_024,
            max_batch_tokens: 256,
            threads: None,
            device: Device::Auto,
            format: NumberFormat::Auto,
            adapter: AdapterChoice::Auto,
        }
    }
}

/// What an encoder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDescription {
    /// The model directory's name, and the adapter's after a `+`.
    pub name: String,
    /// Length of every embedding.
    pub dimensions: usize,
    /// Longest input in tokens, special ones included; the rest of a text is cut off.
    pub max_tokens: usize,
    /// Hex SHA-256 over the model's files and settings. Encoders with one fingerprint may stand in for
    /// each other: device and number format move an embedding by a cosine of at most .005.
    pub fingerprint: String,
    /// Device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    pub backend: String,
}

/// One text's embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The vector; of length 1 when the model asks for it.
    pub vector: Vec<f32>,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// Whether the text was longer than the model's limit, so that its end was not seen.
    pub truncated: bool,
}

/// A handle to a running encoder. Clones share it.
#[derive(Clone)]
pub struct EncoderHandle {
    shared: Arc<Shared>,
}

type Answer = oneshot::Receiver<Result<Vec<Embedding>, EmbedError>>;

struct Shared {
    requests: SyncSender<Request>,
    queue_capacity: usize,
    model: ModelDescription,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for EncoderHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncoderHandle").field("model", &self.shared.model).finish_non_exhaustive()
    }
}

impl EncoderHandle {
    /// Loads the model in `dir`, runs it once, and starts its thread.
    ///
    /// # Errors
    /// Names the file and the key or tensor that is missing, damaged or unsupported.
    pub fn spawn(dir: &Path, config: &EncoderConfig) -> Result<Self, LoadError> {
        Self::spawn_around(dir, config, |backend| backend)
    }

    /// [`Self::spawn`] with the loaded model passed through `around`.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_around(
        dir: &Path,
        config: &EncoderConfig,
        around: impl FnOnce(Box<dyn Backend>) -> Box<dyn Backend>,
    ) -> Result<Self, LoadError> {
        let model = ModelDir::open(dir)?;
        let tokenizer = TextTokenizer::load(&model)?;
        let weights = model.read_weights(&config.adapter)?;
        let mut backend = load_backend(&model, &weights, config)?;
        let description = ModelDescription {
            name: weights.name_of(&model),
            dimensions: model.bert.hidden_size,
            max_tokens: model.max_tokens,
            fingerprint: model.fingerprint(&weights),
            backend: backend.name().to_owned(),
        };
        drop(weights);
        run_once(backend.as_mut(), &tokenizer)?;
        Self::start(around(backend), tokenizer, description, config)
    }

    /// Puts a loaded model on its thread.
    fn start(
        backend: Box<dyn Backend>,
        tokenizer: TextTokenizer,
        model: ModelDescription,
        config: &EncoderConfig,
    ) -> Result<Self, LoadError> {
        // One more for the request that goes first.
        let (requests, waiting) = sync_channel(config.queue_capacity + 1);
        let counters = Arc::new(Counters::default());
        let device = DeviceLoop::new(
            backend,
            tokenizer,
            waiting,
            config.max_batch_tokens,
            Arc::clone(&counters),
        );
        thread::Builder::new()
            .name("encoder-device".into())
            .spawn(|| {
                give_way(Behind::Answers);
                device.run();
            })
            .map_err(|error| LoadError::Threads(error.to_string()))?;
        Ok(Self {
            shared: Arc::new(Shared {
                requests,
                queue_capacity: config.queue_capacity,
                model,
                counters,
            }),
        })
    }

    /// Embeds `texts`, in order, when it is their turn: those of one `flow` wait for each other, and not for those of
    /// others. Dropping the future withdraws the request. Needs a tokio runtime with its clock when a deadline is
    /// given.
    ///
    /// # Errors
    /// See [`EmbedError`]; either all texts are embedded or none.
    pub async fn embed(
        &self,
        texts: Vec<String>,
        flow: Flow,
        deadline: Option<Instant>,
    ) -> Result<Vec<Embedding>, EmbedError> {
        self.wait_for(Wanted { texts, deadline, turn: WantedTurn::Of(flow) }).await
    }

    /// [`Self::embed`], before everything that waits and though the queue be full: for the one caller
    /// that asks whether the device still works.
    ///
    /// # Errors
    /// See [`EmbedError`].
    pub async fn embed_first(
        &self,
        texts: Vec<String>,
        deadline: Instant,
    ) -> Result<Vec<Embedding>, EmbedError> {
        self.wait_for(Wanted { texts, deadline: Some(deadline), turn: WantedTurn::First }).await
    }

    async fn wait_for(&self, wanted: Wanted) -> Result<Vec<Embedding>, EmbedError> {
        if wanted.texts.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = wanted.deadline;
        let waiting = Waiting(LeftAt::default());
        // Declared later, dropped earlier: as `Waiting` wants it.
        let answer = self.submit(wanted, &waiting)?;
        let answer = match deadline {
            None => answer.await,
            Some(at) => tokio::time::timeout_at(at.into(), answer)
                .await
                .map_err(|_| EmbedError::DeadlineExceeded)?,
        };
        answer.unwrap_or(Err(EmbedError::Stopped))
    }

    /// [`Self::embed`] for code outside any async runtime, without a deadline.
    ///
    /// # Errors
    /// As [`Self::embed`].
    ///
    /// # Panics
    /// When called on a thread that runs async tasks.
    pub fn embed_blocking(&self, texts: Vec<String>) -> Result<Vec<Embedding>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let waiting = Waiting(LeftAt::default());
        let wanted = Wanted { texts, deadline: None, turn: WantedTurn::Of(Flow::ALONE) };
        let answer = self.submit(wanted, &waiting)?.blocking_recv();
        answer.unwrap_or(Err(EmbedError::Stopped))
    }

    /// What this encoder is.
    #[must_use]
    pub fn model(&self) -> &ModelDescription {
        &self.shared.model
    }

    /// What it has done so far and what waits.
    #[must_use]
    pub fn stats(&self) -> EncoderStats {
        self.shared.counters.snapshot()
    }

    /// Whether it still answers. It stops for good when the model panics.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared.counters.is_running()
    }

    fn submit(&self, wanted: Wanted, waiting: &Waiting) -> Result<Answer, EmbedError> {
        if !self.is_running() {
            return Err(EmbedError::Stopped);
        }
        let shared = &self.shared;
        let counters = &self.shared.counters;
        let place = if wanted.turn == WantedTurn::First {
            counters.extra_place()
        } else {
            counters.take_place(shared.queue_capacity).ok_or(EmbedError::QueueFull)?
        };
        let (reply, answer) = oneshot::channel();
        let request = Request::new(wanted, reply, Arc::clone(&waiting.0), place);
        match shared.requests.try_send(request) {
            Ok(()) => Ok(answer),
            Err(TrySendError::Full(_)) => Err(EmbedError::QueueFull),
            Err(TrySendError::Disconnected(_)) => Err(EmbedError::Stopped),
        }
    }
}

/// Finds out at start whether the model runs at all.
fn run_once(backend: &mut dyn Backend, tokenizer: &TextTokenizer) -> Result<(), LoadError> {
    let failed = |cause: String| LoadError::FirstRun(crate::backend::BackendError(cause));
    let tokens = tokenizer
        .encode("find the open issues of a repository")
        .map_err(|error| failed(error.to_string()))?;
    let mut batch = Batch::default();
    batch.push(&tokens.ids);
    let vectors = backend.forward(&batch).map_err(LoadError::FirstRun)?;
    if vectors.iter().flatten().all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(failed("the result is not finite".into()))
}
