//! The approximate side: an HNSW graph over byte codes, built once by one thread and then only
//! read. It proposes slots; their exact overlaps are the flat block's business.

use std::fmt;

use fixedbitset::FixedBitSet;
use usearch::{Index, MetricKind, ScalarKind};

use super::flat::FlatBlock;
use super::kernel::Kernel;
use super::metric::{self, CodedRow};
use super::permits::Permits;

/// Links a node keeps a level above the lowest, and candidates that are weighed when one is
/// placed: usearch's own defaults. 32 and 256 triple the time to build.
const CONNECTIVITY: usize = 16;
const EXPANSION_BUILD: usize = 128;

/// Proposals asked for each hit that is wanted: what the byte codes and the walk put a little too
/// low is found again by its exact overlap.
const OVERFETCH: usize = 4;
const LEAST_PROPOSALS: usize = 40;

/// More proposals than this make the walk dearer than the exact scan.
const MOST_PROPOSALS: usize = 1_024;

/// An HNSW graph of rows.
pub(super) struct Graph {
    index: Index,
    /// usearch has a fixed number of search contexts and fails when they are all taken.
    contexts: Permits,
}

impl Graph {
    /// As many searches run at once as there are `contexts`; the others wait for them.
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
        // One context while building, so that the graph is the same on any number of cores.
        index.reserve_capacity_and_threads(flat.len(), 1)?;
        for (slot, row) in flat.rows().enumerate() {
            index.add(slot as u64, CodedRow::encode(row).as_slice())?;
        }
        index.reserve_capacity_and_threads(flat.len(), contexts.total())?;
        Ok(Self { index, contexts })
    }

    /// Slots that are likely to hold the `wanted` best of the allowed ones; `None` when only the
    /// exact scan can tell.
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
