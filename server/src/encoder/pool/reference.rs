//! What workers are held to: the model's fingerprint and width, and the embedding of one known text.

use crate::encoder::{Embedded, Encoder, Flow};
use crate::error::Error;

/// The text that every worker embeds again and again.
pub(super) const CANARY: &str = "find the open issues of a repository";

/// The least cosine of a right canary. Number formats move an embedding by .005 at most.
const COSINE_MIN: f32 = 0.99;

/// How far from 1 the length of an embedding may be.
const LENGTH_SLACK: f32 = 0.02;

/// What workers are held to.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(super) fingerprint: String,
    pub(super) dimensions: usize,
    canary: Vec<f32>,
}

impl Reference {
    /// As `encoder`, which is trusted, does it.
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub async fn of(encoder: &dyn Encoder) -> Result<Self, Error> {
        let mut embedded = encoder.embed(vec![CANARY.to_owned()], Flow::ALONE, None).await?;
        let canary =
            embedded.pop().ok_or_else(|| Error::internal("the encoder left a text out"))?;
        Ok(Self {
            fingerprint: encoder.fingerprint().to_owned(),
            dimensions: encoder.dimensions(),
            canary: canary.vector,
        })
    }

    /// Whether these can be embeddings of `count` texts.
    pub(super) fn is_sound(&self, count: usize, embedded: &[Embedded]) -> bool {
        embedded.len() == count && embedded.iter().all(|one| self.is_embedding(&one.vector))
    }

    /// Whether this is the canary's embedding.
    pub(super) fn is_canary(&self, vector: &[f32]) -> bool {
        let lengths = length(vector) * length(&self.canary);
        // A NaN is not above.
        self.is_embedding(vector) && dot(vector, &self.canary) / lengths >= COSINE_MIN
    }

    fn is_embedding(&self, vector: &[f32]) -> bool {
        // A model whose vectors have other lengths is held to no length.
        let unit = (length(&self.canary) - 1.0).abs() < LENGTH_SLACK;
        let length = length(vector);
        let fits = if unit { (length - 1.0).abs() < LENGTH_SLACK } else { length.is_finite() };
        vector.len() == self.dimensions && fits
    }
}

/// Infinite or not a number when one of the values is.
fn length(vector: &[f32]) -> f32 {
    dot(vector, vector).sqrt()
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(canary: &[f32]) -> Reference {
        let (fingerprint, dimensions) = ("f".into(), canary.len());
        Reference { fingerprint, dimensions, canary: canary.to_vec() }
    }

    fn sound(reference: &Reference, vectors: &[&[f32]]) -> bool {
        let embedded = |vector: &&[f32]| Embedded { vector: vector.to_vec(), truncated: false };
        reference.is_sound(1, &vectors.iter().map(embedded).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_no_embedding_is_seen() {
        let unit = reference(&[1.0, 0.0]);
        assert!(sound(&unit, &[&[0.0, 1.0]]) && sound(&unit, &[&[0.6, -0.81]]));
        let wrong: [&[&[f32]]; 7] = [
            &[],
            &[&[0.0, 1.0], &[0.0, 1.0]],
            &[&[1.0]],
            &[&[0.0, 0.0]],
            &[&[0.0, f32::NAN]],
            &[&[f32::INFINITY, 0.0]],
            &[&[3.0, 4.0]],
        ];
        for vectors in wrong {
            assert!(!sound(&unit, vectors), "{vectors:?}");
        }
        let long = reference(&[3.0, 4.0]);
        assert!(sound(&long, &[&[1.0, 9.0]]) && !sound(&long, &[&[1.0, f32::NAN]]));
    }

    #[test]
    fn a_canary_of_another_kind_is_seen() {
        let unit = reference(&[1.0, 0.0]);
        assert!(unit.is_canary(&[1.0, 0.0]) && unit.is_canary(&[0.995, 0.0999]));
        assert!(!unit.is_canary(&[0.0, 1.0]) && !unit.is_canary(&[-1.0, 0.0]));
        assert!(!unit.is_canary(&[f32::NAN, 0.0]) && !unit.is_canary(&[]));
    }
}
