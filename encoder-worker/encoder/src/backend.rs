//! Interface between the batching loop and the code that runs the model. This file depends on no device, no tokenizer
//! and no queue.

use thiserror::Error;

/// Tokenized texts, one after the other without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    token_ids: Vec<u32>,
    /// Start of each text, followed by the end of the batch.
    bounds: Vec<usize>,
}

impl Default for Batch {
    fn default() -> Self {
        Self { token_ids: Vec::new(), bounds: vec![0] }
    }
}

impl Batch {
    /// Adds one text's tokens, special ones included.
    pub fn push(&mut self, token_ids: &[u32]) {
        self.token_ids.extend_from_slice(token_ids);
        self.bounds.push(self.token_ids.len());
    }

    /// Returns all token ids.
    #[must_use]
    pub fn token_ids(&self) -> &[u32] {
        &self.token_ids
    }

    /// Returns the start of each text in [`Self::token_ids`], followed by the end of the last one.
    #[must_use]
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// Returns the number of texts.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Returns true if the batch holds no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts() == 0
    }
}

/// Error of a device call.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// Largest batches that a device gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most tokens of a batch with several texts.
    pub tokens: usize,
    /// Most tokens of one text. A text with more than [`Self::tokens`] is a batch by itself.
    pub text_tokens: usize,
}

/// Model loaded on one device. It is owned by one thread and never shared.
pub trait Backend: Send {
    /// Returns the device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    fn name(&self) -> &str;

    /// Returns the most tokens that a batch has where nothing else was configured: as many as keep the device busy.
    fn batch_tokens(&self) -> usize;

    /// Makes ready for all batches within `limits`, before the first one. A device that allocates memory or chooses code
    /// by the size of a batch does it here, so that no caller waits for it.
    ///
    /// # Errors
    /// The device failed, or has too little memory for the largest batch.
    fn prepare(&mut self, limits: BatchLimits) -> Result<(), BackendError>;

    /// Prepares the calling thread, which will make all further calls.
    fn settle(&mut self) {}

    /// Announces that a batch is about to come, for devices that take time to wake.
    fn rouse(&mut self) {}

    /// Embeds a batch and returns one vector per text, in order: pooled, and normalised when the model requires it. No
    /// text of a batch is empty or longer than the model's limit.
    ///
    /// # Errors
    /// The device failed; the texts of this batch then get no embedding.
    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError>;
}
