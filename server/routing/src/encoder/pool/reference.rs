//! Reference that workers must agree with: the model's fingerprint and dimensions, and the embeddings of known texts.

use super::canaries::{Check, KNOWN, KnownText, new_texts};
use crate::encoder::{Embedded, Encoder, Flow, Prefixes};
use toolgate_core::error::Error;

/// Minimum cosine of a correct answer for a known text. Number formats move an embedding by .005 at most.
const KNOWN_COSINE_MIN: f32 = 0.99;

/// Minimum cosine of a correct answer for a text of traffic. It is lower, because the text may be of any kind and both
/// embeddings may be off.
pub const COMPARED_COSINE_MIN: f32 = 0.95;

/// Maximum deviation of an embedding's length from 1.
const LENGTH_SLACK: f32 = 0.02;

/// Reference that workers must agree with.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(super) fingerprint: String,
    pub(super) dimensions: usize,
    known: Vec<KnownText>,
    /// Prefixes of the texts of traffic.
    prefixes: Vec<String>,
    /// True if the model's embeddings have unit length.
    unit: bool,
}

impl Reference {
    /// Draws known texts and embeds them with `encoder`, which is trusted. Like the texts of traffic, each begins with
    /// one of `prefixes`.
    ///
    /// # Errors
    /// Same errors as [`Encoder::embed`].
    pub async fn of(encoder: &dyn Encoder, prefixes: &Prefixes) -> Result<Self, Error> {
        let prefixes = vec![prefixes.query.clone(), prefixes.passage.clone()];
        let texts = new_texts(KNOWN, &prefixes);
        let embedded = encoder.embed(texts.clone(), Flow::ALONE, None).await?;
        if embedded.len() != texts.len() {
            return Err(Error::internal("the encoder left a text out"));
        }
        let of = |(text, one): (String, Embedded)| KnownText {
            text,
            vector: one.vector,
            cosine_min: KNOWN_COSINE_MIN,
        };
        let known: Vec<KnownText> = texts.into_iter().zip(embedded).map(of).collect();
        Ok(Self {
            fingerprint: encoder.fingerprint().to_owned(),
            dimensions: encoder.dimensions(),
            unit: known.iter().all(|one| (length(&one.vector) - 1.0).abs() < LENGTH_SLACK),
            known,
            prefixes,
        })
    }

    /// Returns the reference of a pool without workers. It has no known texts, so that a start embeds none.
    #[must_use]
    pub fn without_workers(encoder: &dyn Encoder) -> Self {
        Self {
            fingerprint: encoder.fingerprint().to_owned(),
            dimensions: encoder.dimensions(),
            known: Vec::new(),
            prefixes: Vec::new(),
            unit: true,
        }
    }

    /// Draws the texts of a check. If `caught` is not empty, one of its texts is included.
    pub(super) fn draw_check<'a>(&'a self, caught: &'a [KnownText]) -> Check<'a> {
        Check::draw(&self.known, caught, &self.prefixes)
    }

    /// Returns true if `embedded` could be the embeddings of `count` texts.
    pub(super) fn is_sound(&self, count: usize, embedded: &[Embedded]) -> bool {
        embedded.len() == count && embedded.iter().all(|one| self.is_embedding(&one.vector))
    }

    /// Returns true if every known text of the check has its expected embedding.
    pub(super) fn passes(&self, check: &Check<'_>, embedded: &[Embedded]) -> bool {
        let right = |(known, one): (&Option<&KnownText>, &Embedded)| {
            known.is_none_or(|known| self.agree(known, &one.vector))
        };
        embedded.len() == check.known.len() && check.known.iter().zip(embedded).all(right)
    }

    /// Returns true if `other` could be the text's embedding, made on any device and in any number format.
    pub(super) fn agree(&self, known: &KnownText, other: &[f32]) -> bool {
        // A NaN fails this comparison.
        self.is_embedding(other) && cosine(&known.vector, other) >= known.cosine_min
    }

    fn is_embedding(&self, vector: &[f32]) -> bool {
        // If the model's vectors don't have unit length, any finite length is accepted.
        let length = length(vector);
        let fits = if self.unit { (length - 1.0).abs() < LENGTH_SLACK } else { length.is_finite() };
        vector.len() == self.dimensions && fits
    }
}

/// Returns the cosine of the angle between two embeddings, -1 to 1. NaN if one of them is all zeros or not finite.
#[must_use]
pub fn cosine(one: &[f32], other: &[f32]) -> f32 {
    dot(one, other) / (length(one) * length(other))
}

/// Returns the Euclidean length. Infinite or NaN if a value is.
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
        Reference {
            fingerprint: "f".into(),
            dimensions: canary.len(),
            known: vec![KnownText {
                text: "a".into(),
                vector: canary.to_vec(),
                cosine_min: KNOWN_COSINE_MIN,
            }],
            prefixes: Vec::new(),
            unit: (length(canary) - 1.0).abs() < LENGTH_SLACK,
        }
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
        let check = Check { texts: vec!["a".into()], known: vec![unit.known.first()] };
        let passes = |vector: &[f32]| {
            unit.passes(&check, &[Embedded { vector: vector.to_vec(), truncated: false }])
        };
        assert!(passes(&[1.0, 0.0]) && passes(&[0.995, 0.0999]));
        assert!(!passes(&[0.0, 1.0]) && !passes(&[-1.0, 0.0]));
        assert!(!passes(&[f32::NAN, 0.0]) && !passes(&[]));
        assert!(!unit.passes(&check, &[]), "a text that was left out");
    }
}
