//! Encoder that adds the model's prefix to texts. Its fingerprint covers the prefix, so that a new prefix causes
//! everything to be embedded again.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::{EmbedFuture, Encoder, Flow};

/// Encoder that adds a prefix to every text.
pub struct Prefixed {
    encoder: Arc<dyn Encoder>,
    prefix: String,
    fingerprint: String,
}

impl Prefixed {
    /// Wraps `encoder` so that `prefix` is added to every text. The prefix may be empty.
    #[must_use]
    pub fn new(encoder: Arc<dyn Encoder>, prefix: &str) -> Self {
        let mut fingerprint = encoder.fingerprint().to_owned();
        if !prefix.is_empty() {
            let hash = Sha256::digest(prefix.as_bytes());
            fingerprint.push('+');
            fingerprint.push_str(&hex::encode(&hash[..8]));
        }
        Self { encoder, prefix: prefix.to_owned(), fingerprint }
    }
}

impl Encoder for Prefixed {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.encoder.dimensions()
    }

    fn embed(
        &self,
        mut texts: Vec<String>,
        flow: Flow,
        deadline: Option<Instant>,
    ) -> EmbedFuture<'_> {
        if !self.prefix.is_empty() {
            texts.iter_mut().for_each(|text| text.insert_str(0, &self.prefix));
        }
        self.encoder.embed(texts, flow, deadline)
    }
}
