//! Texts with known embeddings. A device that embeds them wrongly can't be trusted with any text.

use std::time::{Duration, Instant};

use super::error::CanaryError;
use toolgate_encoder::{Embedding, EncoderHandle};

/// Canary texts: short, long and not ASCII. None of them comes from a user.
pub(super) const TEXTS: [&str; 5] = [
    "git",
    "list the open issues of a repository",
    "Größe über alles prüfen, 在仓库中搜索未解决的问题, найди файл",
    "SELECT name, count(*) FROM orders WHERE created_at >= '2024-01-01' GROUP BY name LIMIT 10;",
    "Read the file that the user named, find every function in it that opens a network connection, and \
     write a short report: for each function its name, the address it connects to, how long it waits, \
     and what it does when nobody answers. When the file does not exist, look for one with a similar \
     name in the same folder and ask before reading it. Do not change anything.",
];

/// Smallest cosine between a reference and an answer, -1 to 1. Number formats move it by .005 at most.
const COSINE_MIN: f64 = 0.99;

/// Reference embeddings of the canary texts.
#[derive(Debug)]
pub(super) struct Canary {
    references: Vec<Vec<f32>>,
}

impl Canary {
    /// Creates a canary from the correct embeddings.
    pub(super) fn new(right: Vec<Embedding>) -> Result<Self, CanaryError> {
        let canary = Self { references: right.into_iter().map(|one| one.vector).collect() };
        canary.compare(canary.references.iter().map(Vec::as_slice))?;
        Ok(canary)
    }

    /// Embeds the canary texts ahead of all waiting requests; returns the lowest cosine if all are right.
    pub(super) async fn run(
        &self,
        encoder: &EncoderHandle,
        timeout: Duration,
    ) -> Result<f64, CanaryError> {
        let texts = TEXTS.map(String::from).to_vec();
        let answer = encoder.embed_first(texts, Instant::now() + timeout).await;
        self.judge(&answer.map_err(CanaryError::NoAnswer)?)
    }

    /// Compares embeddings with the references; returns the lowest cosine if all are right.
    pub(super) fn judge(&self, answer: &[Embedding]) -> Result<f64, CanaryError> {
        self.compare(answer.iter().map(|one| one.vector.as_slice()))
    }

    fn compare<'a>(&self, answer: impl Iterator<Item = &'a [f32]>) -> Result<f64, CanaryError> {
        let mut lowest = 1.0;
        for (text, (found, right)) in answer.zip(&self.references).enumerate() {
            if found.len() != right.len() {
                let expected = right.len();
                let found = found.len();
                return Err(CanaryError::Shape { text, expected, found });
            }
            let cosine = cosine(found, right);
            // Comparisons with NaN are false.
            if cosine.is_nan() || cosine < COSINE_MIN {
                return Err(CanaryError::Wrong { text, cosine, minimum: COSINE_MIN });
            }
            lowest = f64::min(lowest, cosine);
        }
        Ok(lowest)
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(vectors: &[[f32; 2]]) -> Vec<Embedding> {
        let one =
            |vector: &[f32; 2]| Embedding { vector: vector.to_vec(), tokens: 1, truncated: false };
        vectors.iter().map(one).collect()
    }

    fn verdict(answer: &[[f32; 2]]) -> Result<f64, CanaryError> {
        let canary = Canary::new(embedded(&[[1.0, 0.0], [0.6, 0.8]])).expect("sound references");
        canary.judge(&embedded(answer))
    }

    #[test]
    fn what_is_near_is_right() {
        assert!(verdict(&[[1.0, 0.0], [0.6, 0.8]]).is_ok_and(|lowest| lowest > 0.999_999));
        // A different length is no fault: some models don't normalise.
        assert!(verdict(&[[2.0, 0.02], [0.6, 0.8]]).is_ok_and(|lowest| lowest < 0.999_999));
    }

    #[test]
    fn what_is_far_or_no_number_is_wrong() {
        for wrong in [[0.0, 1.0], [-0.6, -0.8], [f32::NAN, 0.8], [0.0, 0.0], [f32::INFINITY, 0.0]] {
            let error = verdict(&[[1.0, 0.0], wrong]).expect_err("it is wrong");
            assert!(matches!(error, CanaryError::Wrong { text: 1, .. }), "{error:?}");
        }
        let references = Canary::new(embedded(&[[f32::NAN, 0.0]]));
        assert!(matches!(references, Err(CanaryError::Wrong { text: 0, .. })));
    }
}
