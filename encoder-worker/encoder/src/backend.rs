//! The seam between the batching loop and whatever runs the model: this file knows no device, no
//! tokenizer and no queue.

use thiserror::Error;

/// Tokenized texts, one after the other without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    token_ids: Vec<u32>,
    /// Where each text begins, and at last where the batch ends.
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

    /// All token ids.
    #[must_use]
    pub fn token_ids(&self) -> &[u32] {
        &self.token_ids
    }

    /// Where each text begins in [`Self::token_ids`]; one more entry says where the last one ends.
    #[must_use]
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// Number of texts.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Number of tokens.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Whether no text was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts() == 0
    }
}

/// A device call failed.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// Runs one model on one device. Owned by one thread; never shared.
pub trait Backend: Send {
    /// The device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    fn name(&self) -> &str;

    /// Readies the calling thread, which will make all further calls.
    fn settle(&mut self) {}

    /// Says that a batch is about to come, for devices that take time to wake.
    fn rouse(&mut self) {}

    /// One vector per text of `batch`, in order: pooled, and normalised when the model asks for it.
    /// No text of a batch is empty or longer than the model's limit.
    ///
    /// # Errors
    /// When the device fails; the texts of this batch then get no embedding.
    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError>;
}
