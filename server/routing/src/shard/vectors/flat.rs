//! Exact rows in one block, and the scan over all or some of them. Results are always exact; the caller decides when a
//! scan is fast enough.

use super::Hit;
use super::codes::{Codes, fill};
use super::kernel::Kernel;
use super::top::Top;

/// Number of rows scored in one kernel call.
const BATCH: usize = 64;

/// Block of unit vectors by slot.
#[derive(Debug)]
pub(super) struct FlatBlock {
    dimensions: usize,
    rows: Vec<f32>,
    codes: Option<Codes>,
    kernel: Kernel,
}

impl FlatBlock {
    /// Creates a block. `rows` must be whole rows of `dimensions` values; the caller checks them.
    pub(super) fn new(dimensions: usize, mut rows: Vec<f32>, codes_above: usize) -> Self {
        rows.shrink_to_fit();
        let codes = (rows.len() / dimensions > codes_above).then(|| Codes::new(dimensions, &rows));
        Self { dimensions, rows, codes, kernel: Kernel::detect() }
    }

    /// Returns the `k` best of `slots`, which must all exist. `k` is 1 to the number of slots.
    pub(super) fn best(
        &self,
        query: &[f32],
        k: usize,
        slots: impl Iterator<Item = u32>,
    ) -> Vec<Hit> {
        match &self.codes {
            Some(codes) => {
                let near = codes.narrow(self.kernel, query, k, slots);
                self.scan(query, k, near.into_iter())
            }
            None => self.scan(query, k, slots),
        }
    }

    /// Returns the best slots like [`FlatBlock::best`], from the rows alone.
    fn scan(&self, query: &[f32], k: usize, mut slots: impl Iterator<Item = u32>) -> Vec<Hit> {
        let mut top = Top::new(k);
        let mut batch = [0; BATCH];
        let mut overlaps = [0.0; BATCH];
        loop {
            let batch = fill(&mut batch, &mut slots);
            if batch.is_empty() {
                return top.into_hits();
            }
            self.kernel.dots(&self.rows, batch, query, &mut overlaps);
            for (slot, overlap) in batch.iter().zip(overlaps) {
                top.offer(Hit { slot: *slot, overlap });
            }
        }
    }

    /// Returns the cosine of `query` and one row.
    pub(super) fn overlap(&self, query: &[f32], slot: u32) -> f32 {
        let row = &self.rows[slot as usize * self.dimensions..][..self.dimensions];
        self.kernel.dot(row, query)
    }

    pub(super) fn product(&self, a: &[f32], b: &[f32]) -> f32 {
        self.kernel.dot(a, b)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() / self.dimensions
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the rows in order of slot.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.rows.chunks_exact(self.dimensions)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<f32>() + self.codes.as_ref().map_or(0, Codes::memory_bytes)
    }
}
