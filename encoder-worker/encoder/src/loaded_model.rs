//! Model on its device, without the queue and the thread of an encoder.

use std::path::Path;

use crate::backend::{Backend, BackendError, Batch, BatchLimits};
use crate::encoder::EncoderConfig;
use crate::load_backend::load_backend;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::tokenize::TextTokenizer;

/// Loaded model that its owner drives directly: for benchmarks, and for jobs that own a device.
pub struct LoadedModel {
    backend: Box<dyn Backend>,
    tokenizer: TextTokenizer,
}

impl LoadedModel {
    /// Loads the model in `dir`. It uses only device, format, threads and adapter of `config`.
    ///
    /// # Errors
    /// Names the file and the key or tensor that is missing, damaged or unsupported.
    pub fn load(dir: &Path, config: &EncoderConfig) -> Result<Self, LoadError> {
        let model = ModelDir::open(dir)?;
        let tokenizer = TextTokenizer::load(&model)?;
        let mut backend = load_backend(&model, &model.read_weights(&config.adapter)?, config)?;
        let tokens = backend.batch_tokens();
        backend
            .prepare(BatchLimits { tokens, text_tokens: model.max_tokens })
            .map_err(LoadError::Prepare)?;
        Ok(Self { backend, tokenizer })
    }

    /// Returns the device and number format, such as `cpu-int8`.
    #[must_use]
    pub fn backend(&self) -> &str {
        self.backend.name()
    }

    /// Returns the token ids of `text`, special ones included; its end is cut off at the model's limit.
    ///
    /// # Errors
    /// The tokenizer cannot handle the text.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>, BackendError> {
        let tokens =
            self.tokenizer.encode(text).map_err(|error| BackendError(error.to_string()))?;
        Ok(tokens.ids)
    }

    /// Embeds a batch: one vector per text, in order.
    ///
    /// # Errors
    /// The device failed.
    pub fn embed(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        self.backend.forward(batch)
    }
}
