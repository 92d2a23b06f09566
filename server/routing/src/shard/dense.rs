//! The dense index as a snapshot searches it. Rows that are made of people's requests stand nearer to whatever people
//! say than rows of summaries alone do. How much nearer is measured, by the encoder in use: by the mean overlap of both with
//! everybody's requests. That much is taken off, so that tools without a pack don't lose to tools with one, nor the other
//! way round.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;

use super::vectors::{Hit, IndexError, VectorIndex};
use crate::packs::Mixed;

/// What is taken off the overlap of a tool with a pack while the encoder could not be asked. Measured it is .07 by the
/// default encoder and .08 by multilingual-e5-small; docs/packs.md has what either does in a catalog with and without packs.
const PULL: f32 = 0.2;

/// The share of what is taken off that is given back where an overlap is held against the level of "no tool fits": a
/// request that only tools with packs serve should not be refused for it. False accepts and rejects of 300 intents over
/// the shipped catalogs, .2 taken off: .560 and .024 with it, .400 and .096 without.
const GIVEN_BACK: f32 = 0.25;

/// Which rows are made of requests, and how much nearer to everybody's requests they are for it.
#[derive(Debug, Default)]
pub struct Footing {
    mixed: HashMap<u32, Mixed>,
    pull: f32,
}

impl Footing {
    /// Of rows by slot, and how much nearer than their summaries they stand to everybody's requests, in the mean; `None`
    /// where that is not known.
    #[must_use]
    pub fn new(mixed: HashMap<u32, Mixed>, nearer: Option<f32>) -> Self {
        let pull = nearer.map_or(PULL, |nearer| nearer.clamp(0.0, 1.0));
        Self { mixed, pull }
    }

    /// Resident bytes, for the memory budget: what rows were mixed of is shared.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.mixed.capacity() * size_of::<(u32, Mixed)>()
    }
}

/// The index, and what its rows are made of.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'s> {
    index: &'s VectorIndex,
    footing: &'s Footing,
}

impl<'s> Dense<'s> {
    pub(super) fn new(index: &'s VectorIndex, footing: &'s Footing) -> Self {
        Self { index, footing }
    }

    /// The `k` best of the allowed slots by [`Dense::overlap`], best first; ties by slot.
    ///
    /// # Errors
    /// As [`VectorIndex::search`].
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Hit>, IndexError> {
        if self.footing.mixed.is_empty() {
            return self.index.search(query, k, allowed);
        }
        // Twice as many: what stood behind rows of requests may go before them.
        let mut hits = self.index.search(query, k.saturating_mul(2), allowed)?;
        hits.iter_mut().for_each(|hit| hit.overlap -= self.pull(hit.slot));
        hits.sort_by(|a, b| b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot)));
        hits.truncate(k);
        Ok(hits)
    }

    /// The overlap of a slot that rankings go by: that of its row, less what rows of requests are too near.
    #[must_use]
    pub fn overlap(&self, query: &[f32], slot: u32) -> Option<f32> {
        Some(self.index.overlap(query, slot)? - self.pull(slot))
    }

    /// The cosine of the query and the summary of a slot.
    #[must_use]
    pub fn cosine(&self, query: &[f32], slot: u32) -> Option<f32> {
        let overlap = self.index.overlap(query, slot)?;
        let mixed = self.footing.mixed.get(&slot);
        Some(mixed.map_or(overlap, |mixed| {
            mixed.of_summary(overlap, self.index.product(query, mixed.mean()))
        }))
    }

    /// The index itself.
    pub(super) fn index(&self) -> &'s VectorIndex {
        self.index
    }

    /// What an overlap is short of, where it is held against the level of "no tool fits".
    #[must_use]
    pub fn given_back(&self, slot: u32) -> f32 {
        GIVEN_BACK * self.pull(slot)
    }

    fn pull(&self, slot: u32) -> f32 {
        if self.footing.mixed.contains_key(&slot) { self.footing.pull } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shard::vectors::IndexOptions;

    /// The order of two tools, the first of which has a pack, by overlaps of .6 and .5 with the query.
    fn order(nearer: Option<f32>) -> Vec<u32> {
        let rows = vec![0.6, 0.8, 0.5, 0.75_f32.sqrt(), 0.0, 1.0];
        let index = VectorIndex::build_with(2, rows, &IndexOptions::default()).expect("unit rows");
        let mixed = HashMap::from([(0, Mixed::new(Arc::from([0.2, 0.8]), 1.0))]);
        let footing = Footing::new(mixed, nearer);
        let dense = Dense::new(&index, &footing);
        let query = [1.0, 0.0];
        let hits = dense.search(&query, 3, None).expect("searched");
        for hit in &hits {
            let overlap = dense.overlap(&query, hit.slot).expect("a slot");
            assert!((hit.overlap - overlap).abs() < 1e-3, "{hit:?}, {overlap}");
        }
        assert_eq!(dense.search(&query, 1, None).expect("searched")[0], hits[0]);
        let cosine = |slot| dense.cosine(&query, slot).expect("a slot");
        assert!((cosine(0) - 1.0).abs() < 1e-6, "of the summary, whatever is taken off");
        assert!((cosine(1) - 0.5).abs() < 1e-6);
        hits.iter().map(|hit| hit.slot).collect()
    }

    #[test]
    fn what_is_taken_off_a_packs_row_is_what_the_encoder_says() {
        // Where every text is near to every other, .2 less would put any pack's tool behind all others.
        assert_eq!(order(Some(0.02)), [0, 1, 2]);
        assert_eq!(order(Some(0.12)), [1, 0, 2], "a packless twin keeps its place");
        assert_eq!(order(Some(0.7)), [1, 2, 0]);
        assert_eq!(order(Some(-0.1)), [0, 1, 2], "nothing is added");
        assert_eq!(order(None), [1, 0, 2], "not known: the constant");
    }
}
