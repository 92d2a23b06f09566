//! Errors of loading a model directory. Every message names the file, and the key or tensor.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::backend::BackendError;
use crate::device::{Device, NumberFormat};

/// Reason that a model could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file is missing or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file is not valid JSON or has the wrong structure; the cause names the key.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// A key holds something that this encoder does not support.
    #[error("{}: {key}: {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key in that file.
        key: String,
        /// Problem with its value.
        problem: String,
    },
    /// The tokenizer file is not usable.
    #[error("{}: {cause}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Error of the tokenizer.
        cause: String,
    },
    /// The weights file is damaged.
    #[error("{}: {cause}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Error of the reader.
        cause: String,
    },
    /// An adapter is invalid, or does not fit this model.
    #[error("adapter {}: {problem}", path.display())]
    Adapter {
        /// Path of the file, or the name of a shipped adapter.
        path: PathBuf,
        /// Problem with the adapter.
        problem: String,
    },
    /// The weights lack a tensor.
    #[error("{}: tensor {tensor} is missing", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor does not fit `config.json`.
    #[error(
        "{}: tensor {tensor} has shape {found:?}, but config.json asks for {expected:?}",
        path.display()
    )]
    TensorShape {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Shape required by `config.json`.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// The requested device cannot be used.
    #[error("device {device} cannot be used: {cause}")]
    Device {
        /// The device.
        device: Device,
        /// Reason that it cannot be used.
        cause: String,
    },
    /// The device does not support the requested number format.
    #[error("number format {format} is not available on {device}; there is {available}")]
    Format {
        /// The format.
        format: NumberFormat,
        /// The device.
        device: Device,
        /// Formats that the device supports.
        available: &'static str,
    },
    /// The model was read but does not run.
    #[error("the model was loaded but its first run failed: {0}")]
    FirstRun(BackendError),
    /// The device can't run the largest batches that it may get.
    #[error("the device is not ready for its largest batches: {0}")]
    Prepare(BackendError),
    /// A thread could not be started.
    #[error("cannot start the encoder's threads: {0}")]
    Threads(String),
}
