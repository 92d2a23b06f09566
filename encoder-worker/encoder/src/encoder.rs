//! Public interface of the encoder: a cheap handle to its threads. One owns the device and runs batches, one forms them
//! and answers, and a few tokenize. Dropping the last handle stops them.

mod batch_budget;
mod batch_spans;
mod batcher;
pub mod collector;
mod device_thread;
mod distribution;
mod embed_error;
mod formed;
mod handover;
mod request;
mod stats;
#[cfg(test)]
mod tests;
mod tokenizers;
mod turns;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, available_parallelism};
use std::time::Instant;

use tokio::sync::oneshot;

pub use collector::EncoderCollector;
pub use distribution::{Distribution, RANGES};
pub use embed_error::EmbedError;
pub use stats::EncoderStats;
pub use turns::{Flow, estimated_tokens};

use crate::adapter::AdapterChoice;
use crate::backend::{Backend, Batch, BatchLimits};
use crate::device::{Device, NumberFormat};
use crate::giving_way::{Behind, give_way};
use crate::load_backend::load_backend;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::tokenize::TextTokenizer;
use batcher::{Batcher, Event};
use device_thread::DeviceThread;
use formed::{Left, Waiting};
use handover::Handover;
use request::{Request, Wanted, WantedTurn};
use stats::Counters;
use tokenizers::Tokenizers;

/// Settings for the encoder's queue, batches and device.
#[derive(Debug, Clone)]
pub struct EncoderConfig {
    /// Most requests that may wait or run at once; one more is refused with [`EmbedError::QueueFull`].
    pub queue_capacity: usize,
    /// Most tokens in one batch; `None` means as many as suit the device, 256 on a CPU and 16,384 on a GPU. A single longer
    /// text still runs, alone. On a slow device batches hold fewer, so that a short request soon passes a long one.
    pub max_batch_tokens: Option<usize>,
    /// Threads that one batch may use; `None` means one per core.
    pub threads: Option<NonZeroUsize>,
    /// Device to run on.
    pub device: Device,
    /// Number format in which weights are stored and multiplied.
    pub format: NumberFormat,
    /// Adapter to merge into the weights.
    pub adapter: AdapterChoice,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            queue_capacity: 1_024,
            max_batch_tokens: None,
            threads: None,
            device: Device::Auto,
            format: NumberFormat::Auto,
            adapter: AdapterChoice::Auto,
        }
    }
}

/// Description of a loaded model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDescription {
    /// Name of the model directory; the adapter's name follows after a `+`.
    pub name: String,
    /// Length of every embedding.
    pub dimensions: usize,
    /// Longest input in tokens, special ones included; the rest of a text is cut off.
    pub max_tokens: usize,
    /// SHA-256 over the model's files and settings, in hex. Encoders with the same fingerprint are interchangeable:
    /// device and number format move an embedding by a cosine of at most .005.
    pub fingerprint: String,
    /// Device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    pub backend: String,
}

/// Embedding of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Vector; of length 1 when the model requires it.
    pub vector: Vec<f32>,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// True if the text exceeded the model's limit, so that its end was cut off.
    pub truncated: bool,
}

/// Handle to a running encoder. Clones share it.
#[derive(Clone)]
pub struct EncoderHandle {
    shared: Arc<Shared>,
}

type Answer = oneshot::Receiver<Result<Vec<Embedding>, EmbedError>>;

struct Shared {
    events: Sender<Event>,
    queue_capacity: usize,
    model: ModelDescription,
    counters: Arc<Counters>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The batcher may have ended already.
        let _ = self.events.send(Event::Closed);
    }
}

impl std::fmt::Debug for EncoderHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncoderHandle").field("model", &self.shared.model).finish_non_exhaustive()
    }
}

impl EncoderHandle {
    /// Loads the model in `dir`, runs it once, prepares the device for the largest batches, and starts the threads.
    ///
    /// # Errors
    /// Names the file and the key or tensor that is missing, damaged or unsupported.
    pub fn spawn(dir: &Path, config: &EncoderConfig) -> Result<Self, LoadError> {
        Self::spawn_around(dir, config, |backend| backend)
    }

    /// Works like [`Self::spawn`], but passes the loaded model through `around`.
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
        run_once(backend.as_mut(), &tokenizer)?;
        let backend = around(backend);
        let description = ModelDescription {
            name: weights.name_of(&model),
            dimensions: model.bert.hidden_size,
            max_tokens: model.max_tokens,
            fingerprint: model.fingerprint(&weights),
            backend: backend.name().to_owned(),
        };
        drop(weights);
        Self::start(backend, tokenizer, description, config)
    }

    /// Prepares a loaded model for the largest batches, moves it to its thread, and starts the others.
    fn start(
        mut backend: Box<dyn Backend>,
        tokenizer: TextTokenizer,
        model: ModelDescription,
        config: &EncoderConfig,
    ) -> Result<Self, LoadError> {
        let (events, waiting) = channel();
        let counters = Arc::new(Counters::default());
        let handover = Arc::new(Handover::default());
        let max_batch_tokens = config.max_batch_tokens.unwrap_or_else(|| backend.batch_tokens());
        let limits = BatchLimits { tokens: max_batch_tokens, text_tokens: model.max_tokens };
        backend.prepare(limits).map_err(LoadError::Prepare)?;
        let threads = config.threads.or_else(|| available_parallelism().ok());
        let cores = threads.map_or(1, NonZeroUsize::get);
        let tokenizers = Tokenizers::start(tokenizer, cores, &events, &counters)?;
        let batcher = Batcher::new(
            waiting,
            tokenizers,
            Arc::clone(&handover),
            max_batch_tokens,
            Arc::clone(&counters),
        );
        let device = DeviceThread {
            backend,
            handover: Arc::clone(&handover),
            events: events.clone(),
            counters: Arc::clone(&counters),
        };
        let failed = |error: std::io::Error| LoadError::Threads(error.to_string());
        let run_device = || {
            give_way(Behind::Answers);
            device.run();
        };
        thread::Builder::new().name("encoder-device".into()).spawn(run_device).map_err(failed)?;
        // It answers callers, so that it gives way to nobody.
        let started = thread::Builder::new().name("encoder-batches".into()).spawn(|| batcher.run());
        if let Err(error) = started {
            handover.close();
            return Err(failed(error));
        }
        let queue_capacity = config.queue_capacity;
        Ok(Self { shared: Arc::new(Shared { events, queue_capacity, model, counters }) })
    }

    /// Embeds `texts` in order when it is their turn. Texts of one `flow` wait for each other, not for those of others.
    /// Dropping the future withdraws the request. A deadline requires a tokio runtime with its timer.
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

    /// Embeds like [`Self::embed`], but ahead of all waiting requests and even if the queue is full. It is for the
    /// canary, which checks that the device still works.
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
        let waiting = Waiting(Arc::<Left>::default());
        let answer = self.submit(wanted, &waiting)?;
        let answer = match deadline {
            None => answer.await,
            Some(at) => tokio::time::timeout_at(at.into(), answer)
                .await
                .map_err(|_| EmbedError::DeadlineExceeded)?,
        };
        answer.unwrap_or(Err(EmbedError::Stopped))
    }

    /// Embeds like [`Self::embed`], for code outside any async runtime, without a deadline.
    ///
    /// # Errors
    /// The same as [`Self::embed`].
    ///
    /// # Panics
    /// It was called on a thread that runs async tasks.
    pub fn embed_blocking(&self, texts: Vec<String>) -> Result<Vec<Embedding>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let waiting = Waiting(Arc::<Left>::default());
        let wanted = Wanted { texts, deadline: None, turn: WantedTurn::Of(Flow::ALONE) };
        let answer = self.submit(wanted, &waiting)?.blocking_recv();
        answer.unwrap_or(Err(EmbedError::Stopped))
    }

    /// Returns the description of the model.
    #[must_use]
    pub fn model(&self) -> &ModelDescription {
        &self.shared.model
    }

    /// Returns counters of the work so far, and the present queue depth.
    #[must_use]
    pub fn stats(&self) -> EncoderStats {
        self.shared.counters.snapshot()
    }

    /// Returns true if the encoder still answers. It stops for good when the model panics.
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
        let sent = shared.events.send(Event::Arrived(Box::new(request)));
        sent.map(|()| answer).map_err(|_| EmbedError::Stopped)
    }
}

/// Checks at start that the model runs at all.
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
