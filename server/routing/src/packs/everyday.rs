//! Everyday requests: a fixed sample from the shipped packs, and the mean of its embeddings. The overlap of a row with
//! that mean is its mean overlap with these requests: it measures how near the row is to requests in general.

use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::document::{Pack, PackedTool, VOICES};
use super::means::MeanKey;
use super::shipped;

/// Number of requests in the sample. The default encoder embeds them in a tenth of a second.
const SAMPLE: usize = 192;

/// Sample of English requests in every voice, spread evenly over the tools of all shipped packs, even those that are
/// not in use.
static TEXTS: OnceLock<Vec<String>> = OnceLock::new();

/// Returns the sample from the shipped packs.
fn sample(shipped: &[Pack]) -> Vec<String> {
    let tools: Vec<&PackedTool> = shipped.iter().flat_map(|pack| pack.tools.values()).collect();
    let one = |place: usize| -> Option<String> {
        let tool = tools.get(place * tools.len() / SAMPLE)?;
        let in_voice = tool.voices.get(VOICES[place % VOICES.len()]);
        in_voice.or_else(|| tool.voices.values().next())?.first().cloned()
    };
    (0..SAMPLE).filter_map(one).collect()
}

/// Minimum mean overlap with the sample at which a tool counts as near to everything, for the default encoder. It is
/// three standard deviations (.0240) above the mean (.0966) of the 809 tools of the shipped catalogs, of which the
/// highest has .159. `toolgate bench poison --queries` shows these figures.
pub(super) const NEAR_EVERYTHING: f32 = 0.169;

/// Takes the sample from the shipped packs, so that they are not read for it once more.
pub(super) fn take(shipped: &[Pack]) {
    TEXTS.get_or_init(|| sample(shipped));
}

/// Returns the sample.
pub(super) fn texts() -> &'static [String] {
    TEXTS.get_or_init(|| sample(&shipped::packs()))
}

/// Returns the key of the sample's mean among the means of requests.
pub(super) fn key(fingerprint: &str) -> MeanKey {
    let mut hash = Sha256::new();
    for text in texts() {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    (fingerprint.to_owned(), hash.finalize().into())
}

/// Returns the mean of embeddings. `None` if there are none, if their lengths differ, or if the mean is not finite.
pub(super) fn mean(vectors: &[Vec<f32>]) -> Option<Arc<[f32]>> {
    let mut sum = vec![0.0_f32; vectors.first()?.len()];
    for vector in vectors {
        if vector.len() != sum.len() {
            return None;
        }
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|value| *value /= vectors.len() as f32);
    sum.iter().all(|value| value.is_finite()).then(|| sum.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_sample_is_whole_and_of_many_tools() {
        let distinct: BTreeSet<&String> = texts().iter().collect();
        assert_eq!((texts().len(), distinct.len()), (SAMPLE, SAMPLE));
    }

    #[test]
    fn a_mean_is_of_vectors_that_fit() {
        let mean = |vectors: &[Vec<f32>]| super::mean(vectors).map(|mean| mean.to_vec());
        assert_eq!(mean(&[vec![1.0, 0.0], vec![0.0, 1.0]]), Some(vec![0.5, 0.5]));
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[vec![1.0], vec![1.0, 0.0]]), None);
        assert_eq!(mean(&[vec![f32::NAN]]), None);
    }
}
