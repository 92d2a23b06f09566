//! What can be wrong with a model directory. Every message names the file, and the key or tensor.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::backend::BackendError;
use crate::device::{Device, NumberFormat};

/// A model could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file is missing or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not the JSON it should be; the cause names the key.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A key holds something that this encoder does not support.
    #[error("{}: {key}: {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key in that file.
        key: String,
        /// What is wrong with its value.
        problem: String,
    },
    /// The tokenizer file is not usable.
    #[error("{}: {cause}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the tokenizer said.
        cause: String,
    },
    /// The weights file is damaged.
    #[error("{}: {cause}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        cause: String,
    },
    /// An adapter is not usable, or not with this model.
    #[error("adapter {}: {problem}", path.display())]
    Adapter {
        /// The file, or the name of one that comes with the program.
        path: PathBuf,
        /// What is wrong with it.
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
        /// Its shape by `config.json`.
        expected: Vec<usize>,
        /// Its shape in the file.
        found: Vec<usize>,
    },
    /// The device that was asked for cannot be used.
    #[error("device {device} cannot be used: {cause}")]
    Device {
        /// The device.
        device: Device,
        /// Why not.
        cause: String,
    },
    /// The device cannot compute in the number format that was asked for.
    #[error("number format {format} is not available on {device}; there is {available}")]
    Format {
        /// The format.
        format: NumberFormat,
        /// The device.
        device: Device,
        /// What the device can do.
        available: &'static str,
    },
    /// The model was read but does not run.
    #[error("the model was loaded but its first run failed: {0}")]
    FirstRun(BackendError),
    /// A thread could not be started.
    #[error("cannot start the encoder's threads: {0}")]
    Threads(String),
}
