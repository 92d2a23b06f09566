//! TF-IDF as a replacement for the encoder. Words are weighted by their rarity among the summaries, and every word is
//! one dimension.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use toolgate_routing::encoder::{EmbedFuture, Embedded, Encoder, Flow};

/// Encoder that knows the words of the given summaries, but not their meaning.
pub(super) struct TfIdf {
    /// Dimension and rarity of each word. Dimension 0 is for texts without any known word.
    words: BTreeMap<String, (usize, f32)>,
}

impl TfIdf {
    /// Computes the rarity of each word in these texts.
    pub(super) fn of<'a>(summaries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut having: BTreeMap<String, u32> = BTreeMap::new();
        let mut texts = 0_u32;
        for summary in summaries {
            texts += 1;
            for word in words(summary).collect::<BTreeSet<_>>() {
                *having.entry(word).or_default() += 1;
            }
        }
        // Smoothed as usual: a word that is in every text still counts a little.
        let rarity = |count: u32| ((1.0 + texts as f32) / (1.0 + count as f32)).ln() + 1.0;
        let weighed = having.into_iter().zip(1..);
        let words = weighed.map(|((word, count), at)| (word, (at, rarity(count)))).collect();
        Self { words }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; self.dimensions()];
        for word in words(text) {
            if let Some((at, rarity)) = self.words.get(&word) {
                vector[*at] += rarity;
            }
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        } else {
            vector[0] = 1.0;
        }
        vector
    }
}

impl Encoder for TfIdf {
    fn fingerprint(&self) -> &str {
        "tf-idf"
    }

    fn dimensions(&self) -> usize {
        self.words.len() + 1
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let one = |text: &String| Embedded { vector: self.vector(text), truncated: false };
        let embedded = texts.iter().map(one).collect();
        Box::pin(std::future::ready(Ok(embedded)))
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn rare_words_count_for_more() {
        let texts = ["reads a file", "reads a branch", "sends a letter"];
        let encoder = TfIdf::of(texts);
        let query = encoder.vector("file that it reads");
        let overlaps = texts.map(|text| cosine(&query, &encoder.vector(text)));
        assert!(overlaps[0] > overlaps[1] && overlaps[1] > overlaps[2], "{overlaps:?}");
    }

    #[test]
    fn it_is_the_cosine_of_weighed_counts() {
        let encoder = TfIdf::of(["a b", "a c"]);
        let common = 1.0_f32;
        let rare = (3.0_f32 / 2.0).ln() + 1.0;
        let length = (common * common + rare * rare).sqrt();
        let overlap = cosine(&encoder.vector("b"), &encoder.vector("a b"));
        assert!((overlap - rare / length).abs() < 1e-6, "{overlap}");
    }

    #[test]
    fn unknown_words_overlap_with_nothing() {
        let encoder = TfIdf::of(["a b"]);
        assert!(cosine(&encoder.vector("x y"), &encoder.vector("a b")).abs() < 1e-9);
        assert_eq!(encoder.dimensions(), 3);
    }
}
