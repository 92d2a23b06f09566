//! Likeness of two texts: the share of runs of three words that they have in common.

use sha2::{Digest as _, Sha256};

/// Maximum number of words of a text that are looked at.
const WORDS_MAX: usize = 400;
/// Number of words in a run.
const RUN: usize = 3;
/// Minimum number of runs. Texts with fewer runs are like others by chance.
const RUNS_MIN: usize = 6;

/// Runs of a text, hashed and sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch(Vec<u64>);

impl Sketch {
    /// Creates the sketch of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(WORDS_MAX)
            .map(str::to_lowercase)
            .collect();
        let mut runs: Vec<u64> = words.windows(RUN).map(hash).collect();
        runs.sort_unstable();
        runs.dedup();
        Self(runs)
    }

    /// Returns the hashed runs.
    #[must_use]
    pub fn runs(&self) -> &[u64] {
        &self.0
    }

    /// Returns true if there are enough runs for a comparison.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.0.len() >= RUNS_MIN
    }

    /// Returns the runs that both texts have, as a share of the runs that at least one of them has, 0 to 1.
    #[must_use]
    pub fn likeness(&self, other: &Self) -> f64 {
        let common = self.common(other);
        let all = self.0.len() + other.0.len() - common;
        share(common, all)
    }

    /// Returns the share of the other text's runs that this text has too, 0 to 1.
    #[must_use]
    pub fn holds(&self, other: &Self) -> f64 {
        share(self.common(other), other.0.len())
    }

    fn common(&self, other: &Self) -> usize {
        let mut left = self.0.iter().peekable();
        let mut right = other.0.iter().peekable();
        let mut common = 0;
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(left.next()),
                std::cmp::Ordering::Greater => drop(right.next()),
                std::cmp::Ordering::Equal => {
                    common += 1;
                    left.next();
                    right.next();
                }
            }
        }
        common
    }
}

fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// Returns the same number in every release, because stores keep marks that are made of it.
fn hash(words: &[String]) -> u64 {
    let digest = Sha256::digest(words.join(" ").as_bytes());
    u64::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_alike() {
        let text = "Searches the messages of a workspace by words, sender and date, newest first.";
        let one = Sketch::of(text);
        assert!(one.is_enough());
        assert!((one.likeness(&one) - 1.0).abs() < 1e-9);
        let longer =
            Sketch::of(&format!("{text} Pass the token along, and the channel that it is for."));
        assert!(longer.holds(&one) > 0.99 && longer.likeness(&one) < 0.7);
        let other =
            Sketch::of("Creates a new issue in a repository with a title, labels and a body.");
        assert!(one.likeness(&other) < 0.1 && one.holds(&other) < 0.1);
        let empty = Sketch::of("Two words");
        assert!(!empty.is_enough() && empty.likeness(&empty) == 0.0);
    }
}
