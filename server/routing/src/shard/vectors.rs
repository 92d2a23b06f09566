//! Dense index of one shard: exact search over a flat block and, above a measured size, an approximate graph. The
//! results of the graph are scored again with the exact rows. The meaning of slots is defined elsewhere.

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
/// A single search is faster in the graph from about 8,000 vectors on. But building the graph pays off only after about
/// 13,000 searches without a change of the catalog, and recall is no longer complete. So the exact scan is used until
/// it costs a millisecond.
pub const GRAPH_ABOVE: usize = 50_000;

/// Maximum share of allowed slots (0 to 1) at which a filtered search ignores the graph and scans the allowed slots
/// exactly.
///
/// Measured as above, exact scan against graph: of 50,000 at 10% 0.29 / 1.6 ms, at 30% 0.66 / 0.70, at 50% 0.90 / 0.48;
/// of 100,000 at 1% 0.03 / 14.7 ms, at 10% 0.45 / 2.3, at 30% 1.03 / 0.99, at 50% 1.50 / 0.72.
pub const EXACT_SELECTIVITY: f32 = 0.3;

/// Minimum number of candidates that the graph keeps during a search (usearch's `expansion_search`).
const GRAPH_EXPANSION: usize = 128;

/// Maximum deviation of a unit vector's squared length from 1.
const UNIT_TOLERANCE: f32 = 2e-3;

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Row number in the rows given to [`VectorIndex::build`].
    pub slot: u32,
    /// Cosine of query and row, computed from the exact rows, -1 to 1.
    pub overlap: f32,
}

/// Thresholds at which the index uses its search paths. The defaults are measured. Tests and benches use others to
/// force a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexOptions {
    /// Number of vectors above which the graph is built.
    pub graph_above: usize,
    /// Number of vectors above which byte codes are kept. They make exact scans faster.
    pub codes_above: usize,
    /// Maximum share of allowed slots (0 to 1) at which the graph is not used.
    pub exact_selectivity: f32,
    /// Number of candidates that the graph keeps during a search. More is slower and finds more.
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

/// Index of unit vectors by slot, searched by cosine. It is immutable and shared between threads by reference.
#[derive(Debug)]
pub struct VectorIndex {
    flat: Arc<FlatBlock>,
    graph: Option<Graph>,
    options: IndexOptions,
}

impl VectorIndex {
    /// Builds the index with the default options.
    ///
    /// `rows` holds one unit vector of `dimensions` f32 for each slot, slot 0 first. Blocks the thread: about 0.3 s for
    /// 100,000 rows without a graph, but seconds to minutes above [`GRAPH_ABOVE`].
    ///
    /// # Errors
    /// A row is not a finite unit vector, or `rows` does not divide into whole rows.
    pub fn build(dimensions: usize, rows: Vec<f32>) -> Result<Self, IndexError> {
        Self::build_with(dimensions, rows, &IndexOptions::default())
    }

    /// Builds the index with the given options.
    ///
    /// # Errors
    /// Same errors as [`VectorIndex::build`].
    pub fn build_with(
        dimensions: usize,
        rows: Vec<f32>,
        options: &IndexOptions,
    ) -> Result<Self, IndexError> {
        let index = Self::build_exact(dimensions, rows, options)?;
        Ok(if index.lacks_graph() { index.with_graph() } else { index })
    }

    /// Builds the index without its graph, whatever its size. It is ready within a second and can serve searches while
    /// [`VectorIndex::with_graph`] runs in another thread.
    ///
    /// # Errors
    /// Same errors as [`VectorIndex::build`].
    pub fn build_exact(
        dimensions: usize,
        rows: Vec<f32>,
        options: &IndexOptions,
    ) -> Result<Self, IndexError> {
        error::check_rows(dimensions, &rows)?;
        let flat = Arc::new(FlatBlock::new(dimensions, rows, options.codes_above));
        Ok(Self { flat, graph: None, options: *options })
    }

    /// Returns true if the index is large enough for a graph but has none.
    #[must_use]
    pub fn lacks_graph(&self) -> bool {
        self.graph.is_none() && self.len() > self.options.graph_above
    }

    /// Returns the same index with a graph. The rows are shared, not copied. Blocks the thread for about 0.3 s for each
    /// thousand rows. If the graph can't be built for lack of memory, this is logged and the graph is left out:
    /// searches stay correct but are slower.
    #[must_use]
    pub fn with_graph(&self) -> Self {
        let graph = Graph::build(&self.flat, self.options.expansion, Permits::for_readers())
            .inspect_err(|error| tracing::warn!(%error, "no graph: every search is exact"));
        Self { flat: Arc::clone(&self.flat), graph: graph.ok(), options: self.options }
    }

    /// Returns the `k` best of the allowed slots (`None`: of all), best first. Equal overlaps are ordered by slot. Bits
    /// of `allowed` beyond the last slot are ignored. Slots beyond its length are not allowed.
    ///
    /// Always returns `k` hits if that many slots are allowed. They are the exact best, unless
    /// [`VectorIndex::has_graph`]: the graph may miss one in a hundred.
    ///
    /// # Errors
    /// `query` is not a finite unit vector of the index's dimensions.
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

    /// Returns the exact cosine of `query` and one slot. `None` if there is no such slot, or if the query is not a
    /// finite unit vector of the index's dimensions.
    #[must_use]
    pub fn overlap(&self, query: &[f32], slot: u32) -> Option<f32> {
        error::check_query(self.dimensions(), query).ok()?;
        let known = (slot as usize) < self.len();
        known.then(|| self.flat.overlap(query, slot))
    }

    /// Returns the dot product of two vectors of the same length.
    pub(super) fn product(&self, a: &[f32], b: &[f32]) -> f32 {
        self.flat.product(a, b)
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flat.len()
    }

    /// Returns true if there are no vectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values in each vector.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.flat.dimensions()
    }

    /// Returns true if the index has a graph, so that unfiltered searches are approximate.
    #[must_use]
    pub fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Returns the resident bytes, for the memory budget.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.flat.memory_bytes()
            + self.graph.as_ref().map_or(0, Graph::memory_bytes)
    }
}
