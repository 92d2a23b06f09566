//! The dense index of one shard: exact search over a flat block, and above a measured size an
//! approximate graph beside it whose finds are scored again from the exact rows. What a slot
//! stands for lives elsewhere.

mod codes;
mod error;
mod flat;
mod graph;
mod kernel;
mod metric;
mod permits;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod top;

use std::sync::Arc;

use fixedbitset::FixedBitSet;

pub use error::{IndexError, is_row};
use flat::FlatBlock;
use graph::Graph;
use permits::Permits;

/// Number of vectors above which [`VectorIndex::build`] adds the graph.
///
/// Measured at 384 dimensions, k = 10, one core with AVX-512 (`benches/search.rs`):
///
/// | vectors | exact scan | graph (recall) | graph's build | usearch exact |
/// |---|---|---|---|---|
/// | 1,000 | 39 us | 66 us (1.0) | 0.05 s | 59 us |
/// | 10,000 | 196 us | 125 us (1.0) | 1.2 s | 750 us |
/// | 50,000 | 1.1 ms | 0.28 ms (.995) | 10.7 s | 4.0 ms |
/// | 100,000 | 2.2 ms | 0.30 ms (.995) | 28.8 s | 21 ms |
///
/// One search is faster in the graph from about 8,000 on, but a build pays only after some 13,000
/// searches without a change of catalog, and recall is no longer whole. So the scan stays until it
/// costs a millisecond.
pub const GRAPH_ABOVE: usize = 50_000;

/// Share of allowed slots up to which a filtered search ignores the graph and scans the allowed
/// slots exactly.
///
/// Measured as above, exact scan against graph: of 50,000 at 10% 0.29 / 1.6 ms, at 30% 0.66 / 0.70,
/// at 50% 0.90 / 0.48; of 100,000 at 1% 0.03 / 14.7 ms, at 10% 0.45 / 2.3, at 30% 1.03 / 0.99, at
/// 50% 1.50 / 0.72.
pub const EXACT_SELECTIVITY: f32 = 0.3;

/// Candidates the graph keeps while it walks (usearch's `expansion_search`), at the least.
const GRAPH_EXPANSION: usize = 128;

/// A squared length further from 1 than this is no unit vector.
const UNIT_TOLERANCE: f32 = 2e-3;

/// One search result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Row number, as in the rows given to [`VectorIndex::build`].
    pub slot: u32,
    /// Cosine of query and row, computed from the exact rows.
    pub overlap: f32,
}

/// When the index takes which path. The defaults are the measured ones; tests and benches force
/// either path with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexOptions {
    /// The graph is built for more vectors than this.
    pub graph_above: usize,
    /// Byte codes, which make exact scans faster, are kept for more vectors than this.
    pub codes_above: usize,
    /// Share of allowed slots (0 to 1) up to which the graph is not asked.
    pub exact_selectivity: f32,
    /// Candidates that the graph keeps while it walks: more is slower and finds more.
    pub expansion: usize,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            graph_above: GRAPH_ABOVE,
            codes_above: codes::CODES_ABOVE,
            exact_selectivity: EXACT_SELECTIVITY,
            expansion: GRAPH_EXPANSION,
        }
    }
}

/// Unit vectors by slot, searched by cosine. Immutable, shared between threads by reference.
#[derive(Debug)]
pub struct VectorIndex {
    flat: Arc<FlatBlock>,
    graph: Option<Graph>,
    options: IndexOptions,
}

impl VectorIndex {
    /// Builds the index with the measured options.
    ///
    /// `rows` holds one unit vector of `dimensions` f32 for each slot, slot 0 first. Blocks its
    /// thread: about 0.3 s for 100,000 rows, but seconds to minutes above [`GRAPH_ABOVE`].
    ///
    /// # Errors
    /// When a row is not a finite unit vector, or `rows` is not whole rows.
    pub fn build(dimensions: usize, rows: Vec<f32>) -> Result<Self, IndexError> {
        Self::build_with(dimensions, rows, &IndexOptions::default())
    }

    /// Builds the index with options of the caller's choice.
    ///
    /// # Errors
    /// As [`VectorIndex::build`].
    pub fn build_with(
        dimensions: usize,
        rows: Vec<f32>,
        options: &IndexOptions,
    ) -> Result<Self, IndexError> {
        let index = Self::build_exact(dimensions, rows, options)?;
        Ok(if index.lacks_graph() { index.with_graph() } else { index })
    }

    /// Builds the index without its graph, whatever its size: ready within the second, to serve
    /// while [`VectorIndex::with_graph`] runs elsewhere.
    ///
    /// # Errors
    /// As [`VectorIndex::build`].
    pub fn build_exact(
        dimensions: usize,
        rows: Vec<f32>,
        options: &IndexOptions,
    ) -> Result<Self, IndexError> {
        error::check_rows(dimensions, &rows)?;
        let flat = Arc::new(FlatBlock::new(dimensions, rows, options.codes_above));
        Ok(Self { flat, graph: None, options: *options })
    }

    /// Whether the index is large enough for a graph and has none.
    #[must_use]
    pub fn lacks_graph(&self) -> bool {
        self.graph.is_none() && self.len() > self.options.graph_above
    }

    /// The same index with a graph; the rows are shared, not copied. Blocks its thread for about
    /// 0.3 s for each thousand rows. A graph that cannot be built, for want of memory, is logged
    /// and left out: searches stay right, and slower.
    #[must_use]
    pub fn with_graph(&self) -> Self {
        let graph = Graph::build(&self.flat, self.options.expansion, Permits::for_readers())
            .inspect_err(|error| tracing::warn!(%error, "no graph: every search is exact"));
        Self { flat: Arc::clone(&self.flat), graph: graph.ok(), options: self.options }
    }

    /// The `k` best of the allowed slots (`None`: of all), best first, equals by slot. Bits of
    /// `allowed` beyond the last slot are ignored; slots beyond its length are not allowed.
    ///
    /// Always `k` hits where that many slots are allowed. They are the exact best unless
    /// [`VectorIndex::has_graph`], which may overlook one in a hundred.
    ///
    /// # Errors
    /// When `query` is not a finite unit vector of the index's dimensions.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Hit>, IndexError> {
        error::check_query(self.dimensions(), query)?;
        let open = allowed.map_or(self.len(), |bits| bits.count_ones(..self.len().min(bits.len())));
        let wanted = k.min(open);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        if let Some(graph) = &self.graph
            && open as f32 > self.options.exact_selectivity * self.len() as f32
            && let Some(slots) = graph.candidates(query, wanted, allowed)
        {
            return Ok(self.flat.best(query, wanted, slots.into_iter()));
        }
        let slots = 0..self.len() as u32;
        Ok(match allowed {
            None => self.flat.best(query, wanted, slots),
            Some(bits) => {
                let inside = bits.ones().take_while(|slot| *slot < self.len());
                self.flat.best(query, wanted, inside.map(|slot| slot as u32))
            }
        })
    }

    /// The exact cosine of `query` and one slot; `None` when there is no such slot or the query
    /// is not a finite unit vector of the index's dimensions.
    #[must_use]
    pub fn overlap(&self, query: &[f32], slot: u32) -> Option<f32> {
        error::check_query(self.dimensions(), query).ok()?;
        let known = (slot as usize) < self.len();
        known.then(|| self.flat.overlap(query, slot))
    }

    /// The dot product of two vectors of the same length.
    pub(super) fn product(&self, a: &[f32], b: &[f32]) -> f32 {
        self.flat.product(a, b)
    }

    /// Number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flat.len()
    }

    /// Whether there is nothing to find.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of each vector.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.flat.dimensions()
    }

    /// Whether the graph was built, that is whether unfiltered searches are approximate.
    #[must_use]
    pub fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Resident bytes, for the memory budget.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.flat.memory_bytes()
            + self.graph.as_ref().map_or(0, Graph::memory_bytes)
    }
}
