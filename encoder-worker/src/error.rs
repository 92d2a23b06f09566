//! Why a worker did not start, or ended, and the exit code that says so to its supervisor.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;

use toolgate_encoder::EmbedError;
use toolgate_encoder::LoadError;

/// Cause of an error, kept for the log.
pub(super) type Cause = Box<dyn StdError + Send + Sync>;

/// Why a worker did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The arguments make no sense together.
    #[error("{0}")]
    Arguments(String),
    /// The model can't be loaded onto the device.
    #[error("the encoder with the model in {folder} can't be loaded")]
    Model {
        /// The model directory.
        folder: String,
        /// Why.
        #[source]
        source: LoadError,
    },
    /// The model's loading panicked.
    #[error("the model can't be loaded")]
    LoadPanic(#[source] Cause),
    /// An address can't be listened on.
    #[error("{address} can't be listened on; another process may have it ({flag} sets another)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The device did not get through its warm-up.
    #[error("the device did not get through its warm-up")]
    WarmUp(#[source] EmbedError),
    /// The device answered the canary wrong, or not.
    #[error("the canary found the device unfit")]
    Canary(#[from] CanaryError),
    /// The gRPC transport failed.
    #[error("the gRPC transport failed")]
    Transport(#[source] Cause),
    /// The process could not get its threads.
    #[error("the process can't start its threads")]
    Runtime(#[source] io::Error),
}

/// What was wrong with a canary's answer. Texts are named by their place in the list of canaries.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// There was no answer, or none in time.
    #[error("there was no answer")]
    NoAnswer(#[source] EmbedError),
    /// The answer is no list of embeddings of the expected lengths.
    #[error("canary {text}: the embedding has {found} values, expected {expected}")]
    Shape {
        /// The canary.
        text: usize,
        /// Values expected.
        expected: usize,
        /// Values found.
        found: usize,
    },
    /// The embedding is not that of the text.
    #[error("canary {text}: the cosine to its reference is {cosine:.4}, below {minimum}")]
    Wrong {
        /// The canary.
        text: usize,
        /// The cosine found; NaN when the embedding is not finite.
        cosine: f64,
        /// The least that is right.
        minimum: f64,
    },
}

impl WorkerError {
    /// The process's exit code, as `--help` lists them.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Transport(_) | Self::Runtime(_) => 1,
            Self::Arguments(_) => 2,
            Self::Model { .. } | Self::LoadPanic(_) => 3,
            Self::Listen { .. } => 4,
            Self::WarmUp(_) | Self::Canary(_) => 5,
        }
    }

    /// The error and its causes, each after what it caused.
    pub(super) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}
