//! Dense index as a snapshot searches it. Rows mixed from requests are nearer to any request than rows made of
//! summaries alone. The difference is measured with the encoder in use, as the difference of their mean overlaps with
//! everyday requests. It is subtracted, so that tools without a pack don't lose to tools with one, nor the other way
//! round.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;

use super::vectors::{Hit, IndexError, VectorIndex};
use crate::packs::Mixed;

/// Amount subtracted from the overlap of a tool with a pack if it could not be measured. The measured amount is .07 for
/// the default encoder and .08 for multilingual-e5-small. docs/packs.md has the effect of both in a catalog with and
/// without packs.
const PULL: f32 = 0.2;

/// Share of the subtracted amount that is added back when an overlap is compared with the level of "no tool fits": a
/// request that only tools with packs serve should not be refused because of the subtraction. False accepts and rejects
/// of 300 intents over the shipped catalogs, .2 subtracted: .560 and .024 with it, .400 and .096 without.
const GIVEN_BACK: f32 = 0.25;

/// Weight of the nearest kind of requests against the row in [`Dense::ranked_by_kinds`]; 0 to 1. docs/packs.md has the effect.
const KINDS: f32 = 0.5;

/// Share of the spread of everyday requests that is subtracted as well from the overlap by which a tool with a pack is ranked.
/// A tool without a pack must beat the best of many tools with one, and the best are nearer by more than the mean; by how
/// much depends on how far apart the encoder's embeddings are. docs/packs.md has the effect in mixed catalogs.
const BEST_NEARER: f32 = 0.11;

/// Rows that are mixed from requests, and the amounts by which they are nearer to everyday requests.
#[derive(Debug, Default)]
pub struct Footing {
    mixed: HashMap<u32, Mixed>,
    pull: f32,
    /// Amount that is subtracted besides where tools are ranked.
    best_pull: f32,
    /// Amount for the nearest kind of requests, or `None` if it is unknown.
    kinds_pull: Option<f32>,
}

/// Mean amounts by which what requests were mixed into is nearer to everyday requests than the same tools' summaries, and
/// how far apart these requests are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearer {
    /// Amount for the rows.
    pub rows: f32,
    /// Amount for the nearest kind of requests.
    pub kinds: f32,
    /// Spread of everyday requests: the mean squared distance of their embeddings from their mean, 0 to 1.
    pub spread: f32,
}

impl Footing {
    /// Creates the footing of mixed rows, by slot. `nearer` is `None` if it is unknown.
    #[must_use]
    pub fn new(mixed: HashMap<u32, Mixed>, nearer: Option<Nearer>) -> Self {
        let pull = nearer.map_or(PULL, |nearer| nearer.rows.clamp(0.0, 1.0));
        let kinds_pull = nearer.map(|nearer| nearer.kinds.clamp(0.0, 1.0));
        let spread = nearer.map_or(0.0, |nearer| nearer.spread.clamp(0.0, 1.0));
        Self { mixed, pull, best_pull: BEST_NEARER * spread, kinds_pull }
    }

    /// Returns the resident bytes, for the memory budget. It excludes the means and kinds of the mixed rows, which are shared.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.mixed.capacity() * size_of::<(u32, Mixed)>()
    }
}

/// Dense index with the footing of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'s> {
    index: &'s VectorIndex,
    footing: &'s Footing,
}

impl<'s> Dense<'s> {
    pub(super) fn new(index: &'s VectorIndex, footing: &'s Footing) -> Self {
        Self { index, footing }
    }

    /// Returns the `k` best of the allowed slots by [`Dense::overlap`], best first. Equal overlaps are ordered by slot.
    ///
    /// # Errors
    /// Same errors as [`VectorIndex::search`].
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Hit>, IndexError> {
        if self.footing.mixed.is_empty() {
            return self.index.search(query, k, allowed);
        }
        // Twice as many hits are taken: slots behind rows of requests may move ahead of them.
        let mut hits = self.index.search(query, k.saturating_mul(2), allowed)?;
        hits.iter_mut().for_each(|hit| hit.overlap -= self.pull(hit.slot));
        hits.sort_by(|a, b| b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot)));
        hits.truncate(k);
        Ok(hits)
    }

    /// Returns the `k` best of the allowed slots by [`Dense::cosine`], best first. Equal cosines are ordered by slot.
    ///
    /// # Errors
    /// Same errors as [`VectorIndex::search`].
    pub fn search_summaries(
        &self,
        query: &[f32],
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Hit>, IndexError> {
        let mixed = &self.footing.mixed;
        if mixed.is_empty() {
            return self.index.search(query, k, allowed);
        }
        // A mixed row does not show how near its summary is, so that each of them is looked at.
        let is_allowed = |slot: &u32| allowed.is_none_or(|bits| bits.contains(*slot as usize));
        let mut others = FixedBitSet::with_capacity(self.index.len());
        let slots = (0..self.index.len() as u32).filter(is_allowed);
        others.extend(slots.filter(|slot| !mixed.contains_key(slot)).map(|slot| slot as usize));
        let mut hits = self.index.search(query, k, Some(&others))?;
        let hit = |slot: u32| Some(Hit { slot, overlap: self.cosine(query, slot)? });
        hits.extend(mixed.keys().copied().filter(is_allowed).filter_map(hit));
        hits.sort_by(|a, b| b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot)));
        hits.truncate(k);
        Ok(hits)
    }

    /// Returns the overlap of a slot for rankings: that of its row, less the amount for rows mixed from requests.
    #[must_use]
    pub fn overlap(&self, query: &[f32], slot: u32) -> Option<f32> {
        Some(self.index.overlap(query, slot)? - self.pull(slot))
    }

    /// Returns the overlap by which a slot is ranked for a request of several things, given its [`Dense::overlap`]. A slot
    /// without a pack keeps it.
    #[must_use]
    pub fn ranked(&self, slot: u32, overlap: f32) -> f32 {
        let has_pack = self.footing.mixed.contains_key(&slot);
        if has_pack { overlap - self.footing.best_pull } else { overlap }
    }

    /// Returns the overlap by which a slot is ranked for a request of one thing, given its [`Dense::overlap`]: half of
    /// it, and half of that with the nearest kind of its requests. The mean of all requests is near to a request of several
    /// things, the kinds are not. A slot without kinds has that of [`Dense::ranked`]; what is taken off there is taken off
    /// here too.
    #[must_use]
    pub fn ranked_by_kinds(&self, query: &[f32], slot: u32, overlap: f32) -> f32 {
        let product = |row: &[f32]| self.index.product(query, row);
        let best = |mixed: &Mixed| {
            let of_summary = mixed.of_summary(overlap + self.footing.pull, product(mixed.mean()));
            mixed.of_kinds(of_summary, product)
        };
        let overlap = match (self.footing.kinds_pull, self.footing.mixed.get(&slot).and_then(best))
        {
            (Some(pull), Some(best)) => (1.0 - KINDS) * overlap + KINDS * (best - pull),
            _ => overlap,
        };
        self.ranked(slot, overlap)
    }

    /// Returns the cosine of the query and the summary of a slot.
    #[must_use]
    pub fn cosine(&self, query: &[f32], slot: u32) -> Option<f32> {
        let overlap = self.index.overlap(query, slot)?;
        let mixed = self.footing.mixed.get(&slot);
        Some(mixed.map_or(overlap, |mixed| {
            mixed.of_summary(overlap, self.index.product(query, mixed.mean()))
        }))
    }

    /// Returns the underlying index.
    pub(super) fn index(&self) -> &'s VectorIndex {
        self.index
    }

    /// Returns the amount to add to an overlap when it is compared with the level of "no tool fits".
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

    #[test]
    fn the_nearest_kind_of_requests_counts_half() {
        // All rows are .4 of the summary (1, 0) plus the mean (.2, .8), at unit length.
        let length = 0.6_f32.hypot(0.8);
        let row = [0.6 / length, 0.8 / length];
        let index = VectorIndex::build_with(2, [row; 3].concat(), &IndexOptions::default());
        let index = index.expect("unit rows");
        let plain = Mixed::new(Arc::from([0.2, 0.8]), length);
        let kinds = plain.clone().with_kinds(Arc::from([0.0, 1.0, 0.8, 0.6]), &[1.0, 0.0]);
        let ranked = |nearer| {
            let mixed = HashMap::from([(0, kinds.clone()), (1, plain.clone())]);
            let footing = Footing::new(mixed, nearer);
            let dense = Dense::new(&index, &footing);
            [0, 1, 2].map(|slot| {
                let overlap = dense.overlap(&[1.0, 0.0], slot).expect("a slot");
                (dense.ranked(slot, overlap), dense.ranked_by_kinds(&[1.0, 0.0], slot, overlap))
            })
        };
        let nearer = Nearer { rows: 0.1, kinds: 0.2, spread: 0.5 };
        let [(by_row, by_kinds), others @ ..] = ranked(Some(nearer));
        let kind = (0.4 + 0.8) / 1.2_f32.hypot(0.6) - BEST_NEARER * 0.5;
        assert!((by_kinds - (by_row + kind - 0.2) / 2.0).abs() < 1e-5, "{by_kinds}");
        let has_kept = |(by_row, by_kinds): (f32, f32)| (by_row - by_kinds).abs() < 1e-6;
        assert!(others.into_iter().all(has_kept), "{others:?}");
        assert!(ranked(None).into_iter().all(has_kept), "not known by how much kinds are nearer");
    }

    /// Returns the order of the tools. The first two have overlaps of .6 and .5 with the query, and only the first has
    /// a pack.
    fn order(rows: Option<f32>) -> Vec<u32> {
        let nearer = rows.map(|rows| Nearer { rows, kinds: rows, spread: 0.5 });
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
    fn a_tool_with_a_pack_is_ranked_by_less_and_is_as_near_as_before() {
        let index = VectorIndex::build_with(2, vec![1.0, 0.0, 1.0, 0.0], &IndexOptions::default());
        let index = index.expect("unit rows");
        let mixed = HashMap::from([(0, Mixed::new(Arc::from([0.2, 0.8]), 1.0))]);
        let footing = Footing::new(mixed, Some(Nearer { rows: 0.1, kinds: 0.1, spread: 0.5 }));
        let dense = Dense::new(&index, &footing);
        let ranked = [0, 1].map(|slot| dense.ranked(slot, 0.5));
        assert!((ranked[0] - (0.5 - BEST_NEARER * 0.5)).abs() < 1e-6, "{ranked:?}");
        assert!((ranked[1] - 0.5).abs() < 1e-6, "{ranked:?}");
        let overlap = dense.overlap(&[1.0, 0.0], 0).expect("a slot");
        assert!((overlap - 0.9).abs() < 1e-3, "the level of \"no tool fits\" is about this one");
    }

    #[test]
    fn what_is_taken_off_a_packs_row_is_what_the_encoder_says() {
        // If every text is near to every other, subtracting .2 would put any tool with a pack behind all others.
        assert_eq!(order(Some(0.02)), [0, 1, 2]);
        assert_eq!(order(Some(0.12)), [1, 0, 2], "a packless twin keeps its place");
        assert_eq!(order(Some(0.7)), [1, 2, 0]);
        assert_eq!(order(Some(-0.1)), [0, 1, 2], "nothing is added");
        assert_eq!(order(None), [1, 0, 2], "not known: the constant");
    }

    #[test]
    fn summaries_are_searched_as_if_there_were_no_packs() {
        // The row of slot 0 is .4 of its summary (.28, .96) plus its requests' mean (1, 0), at unit length.
        let sum = [0.4 * 0.28 + 1.0, 0.4 * 0.96_f32];
        let length = sum[0].hypot(sum[1]);
        let unit = |x: f32| [x, (1.0 - x * x).sqrt()];
        let rows = [[sum[0] / length, sum[1] / length], unit(0.5), unit(0.2)].concat();
        let index = VectorIndex::build_with(2, rows, &IndexOptions::default()).expect("unit rows");
        let mixed = HashMap::from([(0, Mixed::new(Arc::from([1.0, 0.0]), length))]);
        let footing = Footing::new(mixed, Some(Nearer { rows: 0.0, kinds: 0.0, spread: 0.0 }));
        let dense = Dense::new(&index, &footing);
        let slots = |hits: Vec<Hit>| hits.iter().map(|hit| hit.slot).collect::<Vec<_>>();
        let query = [1.0, 0.0];
        let search = |k, allowed: Option<&FixedBitSet>| {
            dense.search_summaries(&query, k, allowed).expect("searched")
        };
        assert_eq!(slots(dense.search(&query, 3, None).expect("searched")), [0, 1, 2]);
        assert_eq!(slots(search(3, None)), [1, 0, 2]);
        assert!((search(3, None)[1].overlap - 0.28).abs() < 1e-6);
        assert_eq!(slots(search(1, None)), [1]);
        let allowed: FixedBitSet = [0, 2].into_iter().collect();
        assert_eq!(slots(search(3, Some(&allowed))), [0, 2]);
        let none = Footing::default();
        let plain = Dense::new(&index, &none).search_summaries(&query, 3, None);
        assert_eq!(slots(plain.expect("searched")), [0, 1, 2], "the rows are the summaries");
    }
}
