//! Ranking: overlap of intents and summaries with the words that they share, tools that an intent names, and
//! words alone when nothing could be embedded. The bitmap of allowed tools takes part in the search itself.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;

use super::fuse::{Fused, POOL, fuse};
use super::query::Intent;
use crate::error::Error;
use crate::shard::VectorIndex;
use crate::shard::snapshot::Snapshot;

/// How a tool came into the active set. The wire's `FoundBy` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// By overlap.
    Overlap,
    /// An intent names it.
    Name,
    /// By shared words.
    Words,
    /// The request pinned it.
    Pin,
    /// It is always loaded.
    AlwaysLoad,
    /// It was in the active set before.
    Kept,
    /// Tools are not deferred this turn.
    NotDeferred,
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its slot.
    pub slot: u32,
    /// The best cosine over the intents; 0 when nothing was embedded.
    pub overlap: f32,
    /// What the ranking goes by.
    pub score: f32,
    /// How it was found.
    pub found_by: FoundBy,
    /// What its words have in common with an intent, as a share of the best tool's; 0 to 1.
    pub words: f32,
    /// True when it is the best of one of the intents: a turn with several covers each.
    pub leads: bool,
}

impl Candidate {
    /// What another intent makes of the same tool, where that is more.
    fn take_better(&mut self, other: &Self) {
        self.overlap = self.overlap.max(other.overlap);
        self.words = self.words.max(other.words);
        self.score = self.score.max(other.score);
        self.leads |= other.leads;
    }
}

/// Intents with their embeddings; none when the encoder could not be had.
#[derive(Debug)]
pub struct Embedded<'a> {
    /// The intents.
    pub intents: &'a [Intent],
    /// One embedding per intent, or none at all.
    pub vectors: &'a [Vec<f32>],
}

impl Embedded<'_> {
    /// The best `k` of the allowed tools, best first; ties by slot.
    ///
    /// # Errors
    /// [`Error::Internal`] when an embedding does not fit the index.
    pub fn rank(
        &self,
        snapshot: &Snapshot,
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Candidate>, Error> {
        let mut candidates = match self.index(snapshot) {
            Some(index) => self.by_both(snapshot, (index, k), allowed)?,
            None => self.by_words(snapshot, k, allowed),
        };
        self.lift_named(snapshot, allowed, &mut candidates);
        sort(&mut candidates);
        Ok(candidates)
    }

    /// True when overlaps can't be had and words decide.
    #[must_use]
    pub fn is_words_only(&self, snapshot: &Snapshot) -> bool {
        self.index(snapshot).is_none()
    }

    /// A tool's overlap and score, whether or not it was found.
    #[must_use]
    pub fn score_of(&self, snapshot: &Snapshot, slot: u32) -> (f32, f32) {
        self.index(snapshot).map_or((0.0, 0.0), |index| self.score(index, slot))
    }

    fn index<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s VectorIndex> {
        snapshot.vectors().filter(|_| !self.vectors.is_empty())
    }

    /// By overlap and words together, for each intent by itself.
    fn by_both(
        &self,
        snapshot: &Snapshot,
        (index, k): (&VectorIndex, usize),
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Candidate>, Error> {
        let mut found: BTreeMap<u32, Candidate> = BTreeMap::new();
        let (heaviest, pool) = (self.heaviest(), k.max(POOL));
        for (vector, intent) in self.vectors.iter().zip(self.intents) {
            let near = index.search(vector, pool, allowed).map_err(Error::internal)?;
            let near: Vec<_> = near.iter().map(|hit| (hit.slot, hit.overlap)).collect();
            let worded = snapshot.words.search(&intent.text, pool, allowed);
            let worded: Vec<_> = worded.iter().map(|hit| (hit.slot, hit.score)).collect();
            let overlap = |slot| index.overlap(vector, slot).unwrap_or(0.0);
            for (place, fused) in fuse(&near, &worded, overlap, k).into_iter().enumerate() {
                let Fused { slot, overlap, words, score } = fused;
                let (score, leads) = (score * intent.weight / heaviest, place == 0);
                let found_by = FoundBy::Overlap;
                let here = Candidate { slot, overlap, words, score, found_by, leads };
                found.entry(slot).and_modify(|known| known.take_better(&here)).or_insert(here);
            }
        }
        Ok(found.into_values().collect())
    }

    fn heaviest(&self) -> f32 {
        self.intents.iter().map(|intent| intent.weight).fold(0.0, f32::max)
    }

    /// The best cosine, and the best weighted one on the scale of the heaviest intent.
    fn score(&self, index: &VectorIndex, slot: u32) -> (f32, f32) {
        let heaviest = self.heaviest();
        let best = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        let pairs = self.vectors.iter().zip(self.intents);
        pairs.fold(best, |(overlap, score), (vector, intent)| {
            let cosine = index.overlap(vector, slot).unwrap_or(0.0);
            (overlap.max(cosine), score.max(cosine * intent.weight / heaviest))
        })
    }

    fn by_words(
        &self,
        snapshot: &Snapshot,
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Vec<Candidate> {
        let text: Vec<_> = self.intents.iter().map(|intent| intent.text.as_str()).collect();
        let hits = snapshot.words.search(&text.join("\n"), k, allowed);
        let candidate = |slot, score| Candidate {
            slot,
            overlap: 0.0,
            score,
            words: score,
            found_by: FoundBy::Words,
            leads: false,
        };
        if hits.is_empty() {
            // Nothing to go by: the first tools are better than none.
            let is_allowed = |slot: &usize| allowed.is_none_or(|set| set.contains(*slot));
            let first = (0..snapshot.tools.len()).filter(is_allowed).take(k);
            let slots = first.filter_map(|slot| u32::try_from(slot).ok());
            return slots.map(|slot| candidate(slot, 0.0)).collect();
        }
        let best = hits.first().map_or(1.0, |hit| hit.score).max(f32::MIN_POSITIVE);
        hits.iter().map(|hit| candidate(hit.slot, hit.score / best)).collect()
    }

    /// A tool whose name stands in an intent goes before everything that was only similar.
    fn lift_named(
        &self,
        snapshot: &Snapshot,
        allowed: Option<&FixedBitSet>,
        candidates: &mut Vec<Candidate>,
    ) {
        let words = self.intents.iter().flat_map(|intent| names_in(&intent.text));
        let slots: BTreeSet<u32> = words
            .flat_map(|word| slots_named(snapshot, word))
            .filter(|slot| allowed.is_none_or(|set| set.contains(*slot as usize)))
            .collect();
        candidates.retain(|candidate| !slots.contains(&candidate.slot));
        for slot in slots {
            let (overlap, _) = self.score_of(snapshot, slot);
            let found_by = FoundBy::Name;
            candidates.push(Candidate {
                slot,
                overlap,
                score: 1.0 + overlap,
                words: 1.0,
                found_by,
                leads: true,
            });
        }
    }
}

/// Best first; ties by slot, so that the order never depends on chance.
pub fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
}

/// The words of a text that can only be names: joined by `_` or `-`, or in camel case.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '.'));
    words.map(|word| word.trim_matches(['.', '-'])).filter(|word| is_name(word))
}

pub(super) fn is_name(word: &str) -> bool {
    let mut previous_is_lower = false;
    let mut camel_case = false;
    for c in word.chars() {
        camel_case |= previous_is_lower && c.is_uppercase();
        previous_is_lower = c.is_lowercase();
    }
    camel_case || word.contains(['_', '-', '.'])
}

fn slots_named(snapshot: &Snapshot, word: &str) -> Vec<u32> {
    match snapshot.names.model_name(word) {
        Some(slot) => vec![slot],
        None => snapshot.names.mcp_name(word).to_vec(),
    }
}
