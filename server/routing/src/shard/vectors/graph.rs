//! Approximate search: an HNSW graph over byte codes, built once by one thread and then only read. It proposes slots;
//! the flat block computes their exact overlaps.

use std::fmt;

use fixedbitset::FixedBitSet;
use usearch::{Index, MetricKind, ScalarKind};

use super::flat::FlatBlock;
use super::kernel::Kernel;
use super::metric::{self, CodedRow};
use super::permits::Permits;

/// Links of a node at a level above the lowest, and candidates considered when a node is inserted. Both are usearch's
/// defaults. 32 and 256 triple the build time.
const CONNECTIVITY: usize = 16;
const EXPANSION_BUILD: usize = 128;

/// Proposals for each wanted hit, and minimum proposals. Hits that the byte codes or the search rank slightly too low
/// are found again by their exact overlap.
const OVERFETCH: usize = 4;
const LEAST_PROPOSALS: usize = 40;

/// Maximum proposals. With more, the graph is slower than the exact scan.
const MOST_PROPOSALS: usize = 1_024;

/// HNSW graph of rows.
pub(super) struct Graph {
    index: Index,
    /// Permits for usearch's fixed number of search contexts. A search fails if all of them are taken.
    contexts: Permits,
}

impl Graph {
    /// Builds a graph. As many searches run in parallel as there are `contexts`; others wait for them.
    pub(super) fn build(
        flat: &FlatBlock,
        expansion: usize,
        contexts: Permits,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut index = Index::new(&usearch::IndexOptions {
            dimensions: CodedRow::bytes(flat.dimensions()),
            metric: MetricKind::IP,
            quantization: ScalarKind::I8,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_BUILD,
            expansion_search: expansion,
            multi: false,
        })?;
        metric::install(&mut index, flat.dimensions(), Kernel::detect());
        // The build uses one context, so that the graph is the same on any number of cores.
        index.reserve_capacity_and_threads(flat.len(), 1)?;
        for (slot, row) in flat.rows().enumerate() {
            index.add(slot as u64, CodedRow::encode(row).as_slice())?;
        }
        index.reserve_capacity_and_threads(flat.len(), contexts.total())?;
        Ok(Self { index, contexts })
    }

    /// Returns slots that probably include the `wanted` best of the allowed ones, or `None` if only the exact scan can
    /// find them.
    pub(super) fn candidates(
        &self,
        query: &[f32],
        wanted: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Option<Vec<u32>> {
        let proposals = wanted.saturating_mul(OVERFETCH).max(LEAST_PROPOSALS);
        if proposals > MOST_PROPOSALS {
            return None;
        }
        let coded = CodedRow::encode(query);
        let permit = self.contexts.acquire();
        let found = match allowed {
            None => self.index.search(coded.as_slice(), proposals),
            Some(bits) => self
                .index
                .filtered_search(coded.as_slice(), proposals, |slot| bits.contains(slot as usize)),
        };
        drop(permit);
        let slots = found
            .inspect_err(|error| tracing::warn!(%error, "graph search failed: scanning instead"))
            .ok()?
            .keys;
        (slots.len() >= wanted).then(|| slots.into_iter().map(|slot| slot as u32).collect())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_usage()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("nodes", &self.index.size()).finish_non_exhaustive()
    }
}
