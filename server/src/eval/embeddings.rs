//! Embeds everything that an evaluation needs: each text once, in batches large enough to keep the encoder
//! busy.

use std::collections::{HashMap, HashSet};

use crate::catalog::plan::text_hash;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::store::ContentHash;

/// Texts in one call to the encoder, which packs them into batches of its own.
const CHUNK: usize = 256;

/// Hears how many texts of how many are embedded.
pub type Progress = dyn Fn(usize, usize) + Send + Sync;

/// Embeddings by hash of their text.
#[derive(Debug, Default)]
pub struct Embeddings {
    vectors: HashMap<ContentHash, Vec<f32>>,
    truncated: HashSet<ContentHash>,
}

impl Embeddings {
    /// Embeds `texts`.
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub async fn of(
        encoder: &dyn Encoder,
        texts: &[&str],
        progress: &Progress,
    ) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        let distinct: Vec<_> = texts
            .iter()
            .map(|text| (text_hash(text), *text))
            .filter(|(hash, _)| seen.insert(*hash))
            .collect();
        let mut made = Self::default();
        progress(0, distinct.len());
        for chunk in distinct.chunks(CHUNK) {
            let texts = chunk.iter().map(|(_, text)| (*text).to_owned()).collect();
            let embedded = encoder.embed(texts, None).await?;
            for ((hash, _), one) in chunk.iter().zip(embedded) {
                made.vectors.insert(*hash, one.vector);
                if one.truncated {
                    made.truncated.insert(*hash);
                }
            }
            progress(made.vectors.len(), distinct.len());
        }
        Ok(made)
    }

    /// All of them, as a shard is built from.
    #[must_use]
    pub fn vectors(&self) -> &HashMap<ContentHash, Vec<f32>> {
        &self.vectors
    }

    /// The embedding of a text; `None` when it was not embedded.
    #[must_use]
    pub fn vector(&self, text: &str) -> Option<&[f32]> {
        self.vectors.get(&text_hash(text)).map(Vec::as_slice)
    }

    /// Whether the encoder did not read all of the text.
    #[must_use]
    pub fn is_truncated(&self, text: &str) -> bool {
        self.truncated.contains(&text_hash(text))
    }
}
