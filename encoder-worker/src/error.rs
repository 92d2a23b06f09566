//! Errors that keep a worker from starting or end it, and the exit codes that report them to its supervisor.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use toolgate_encoder::EmbedError;
use toolgate_encoder::LoadError;

/// Time for which a device must have served for its failure to be one that came later. A supervisor that takes such a
/// worker elsewhere, as Kubernetes does, does so at most this often.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Cause of an error, kept for the log.
pub(super) type Cause = Box<dyn StdError + Send + Sync>;

/// Reason that a worker did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
    /// The model can't be loaded onto the device.
    #[error("the encoder with the model in {folder} can't be loaded")]
    Model {
        /// The model directory.
        folder: String,
        /// Cause of the failure.
        #[source]
        source: LoadError,
    },
    /// The loading of the model panicked.
    #[error("the model can't be loaded")]
    LoadPanic(#[source] Cause),
    /// The worker can't listen on an address.
    #[error("{address} can't be listened on; another process may have it ({flag} sets another)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The device failed during its warm-up.
    #[error("the device did not get through its warm-up")]
    WarmUp(#[source] EmbedError),
    /// The device answered its first canary wrongly, or not at all.
    #[error("the first canary found the device unfit")]
    FirstCanary(#[from] CanaryError),
    /// The device answered a canary wrongly, or not at all, after it had served.
    #[error("the canary found the device unfit, {} s after it was ready", served.as_secs())]
    Canary {
        /// Time for which it had served.
        served: Duration,
        /// Defect of the answer.
        #[source]
        source: CanaryError,
    },
    /// The gRPC transport failed.
    #[error("the gRPC transport failed")]
    Transport(#[source] Cause),
    /// The process could not start its threads.
    #[error("the process can't start its threads")]
    Runtime(#[source] io::Error),
}

/// Defect of a canary's answer. Texts are identified by their index in the list of canaries.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// There was no answer, or none in time.
    #[error("there was no answer")]
    NoAnswer(#[source] EmbedError),
    /// An embedding has the wrong length.
    #[error("canary {text}: the embedding has {found} values, expected {expected}")]
    Shape {
        /// Index of the canary text.
        text: usize,
        /// Values expected.
        expected: usize,
        /// Values found.
        found: usize,
    },
    /// The embedding does not belong to the text.
    #[error("canary {text}: the cosine to its reference is {cosine:.4}, below {minimum}")]
    Wrong {
        /// Index of the canary text.
        text: usize,
        /// Cosine found, -1 to 1; NaN when the embedding is not finite.
        cosine: f64,
        /// Smallest cosine that is accepted.
        minimum: f64,
    },
}

impl WorkerError {
    /// Returns the process's exit code, as listed by `--help`.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Transport(_) | Self::Runtime(_) => 1,
            Self::Arguments(_) => 2,
            Self::Model { .. } | Self::LoadPanic(_) => 3,
            Self::Listen { .. } => 4,
            Self::Canary { served, .. } if *served >= SETTLED_AFTER => 5,
            Self::WarmUp(_) | Self::FirstCanary(_) | Self::Canary { .. } => 6,
        }
    }

    /// Returns the error followed by its causes, outermost first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_served_for_long_ends_with_another_code_than_one_that_hardly_did() {
        let defect = || CanaryError::NoAnswer(EmbedError::Stopped);
        let after = |served| WorkerError::Canary { served, source: defect() }.exit_code();
        assert_eq!(after(SETTLED_AFTER), 5);
        assert_eq!(after(SETTLED_AFTER - Duration::from_millis(1)), 6);
        assert_eq!(WorkerError::from(defect()).exit_code(), 6);
        assert_eq!(WorkerError::WarmUp(EmbedError::Stopped).exit_code(), 6);
    }
}
