//! The dense index as a snapshot searches it. Rows that are made of people's requests stand nearer to whatever people
//! say than rows of summaries alone do; a constant makes up for it, so that tools without a pack don't lose to tools
//! with one.

use fixedbitset::FixedBitSet;

use super::vectors::{Hit, IndexError, VectorIndex};

/// What is taken off the overlap of a tool with a pack. docs/packs.md has what it does to tools with packs and to those
/// without, packs of a fifth of the servers left out in turn.
const PULL: f32 = 0.2;

/// What of it is given back where an overlap is held against the level of "no tool fits": a request that only tools with
/// packs serve should not be refused for it. False accepts and rejects of 300 intents over the shipped catalogs: .560 and
/// .024 with it, .400 and .096 without.
const GIVEN_BACK: f32 = 0.05;

/// The index, and which slots have a row that is made of requests.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'s> {
    index: &'s VectorIndex,
    packed: &'s FixedBitSet,
}

impl<'s> Dense<'s> {
    pub(super) fn new(index: &'s VectorIndex, packed: &'s FixedBitSet) -> Self {
        Self { index, packed }
    }

    /// The `k` best of the allowed slots, best first; ties by slot.
    ///
    /// # Errors
    /// As [`VectorIndex::search`].
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Hit>, IndexError> {
        if self.packed.is_clear() {
            return self.index.search(query, k, allowed);
        }
        // Twice as many: what stood behind rows of requests may go before them.
        let mut hits = self.index.search(query, k.saturating_mul(2), allowed)?;
        hits.iter_mut().for_each(|hit| hit.overlap -= self.pull(hit.slot));
        hits.sort_by(|a, b| b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot)));
        hits.truncate(k);
        Ok(hits)
    }

    /// The overlap of a slot, as [`Dense::search`] gives it.
    #[must_use]
    pub fn overlap(&self, query: &[f32], slot: u32) -> Option<f32> {
        Some(self.index.overlap(query, slot)? - self.pull(slot))
    }

    /// The index itself.
    pub(super) fn index(&self) -> &'s VectorIndex {
        self.index
    }

    /// What an overlap is short of, where it is held against the level of "no tool fits".
    #[must_use]
    pub fn given_back(&self, slot: u32) -> f32 {
        if self.packed.contains(slot as usize) { GIVEN_BACK } else { 0.0 }
    }

    fn pull(&self, slot: u32) -> f32 {
        if self.packed.contains(slot as usize) { PULL } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::vectors::IndexOptions;

    #[test]
    fn rows_of_requests_are_held_back_by_a_constant() {
        let rows = vec![0.6, 0.8, 0.5, 0.75_f32.sqrt(), 0.0, 1.0];
        let index = VectorIndex::build_with(2, rows, &IndexOptions::default()).expect("unit rows");
        let query = [1.0, 0.0];
        let order = |packed: &[usize]| {
            let packed: FixedBitSet = packed.iter().copied().collect();
            let dense = Dense::new(&index, &packed);
            let hits = dense.search(&query, 2, None).expect("searched");
            for hit in &hits {
                let overlap = dense.overlap(&query, hit.slot).expect("a slot");
                assert!((hit.overlap - overlap).abs() < 1e-3, "{hit:?}, {overlap}");
            }
            hits.iter().map(|hit| hit.slot).collect::<Vec<_>>()
        };
        assert_eq!(order(&[]), [0, 1]);
        assert_eq!(order(&[0]), [1, 0]);
        assert_eq!(order(&[0, 1]), [0, 1], "0.4, 0.3 and 0");
    }
}
