//! Byte codes of the rows, a quarter of their size, so that a scan becomes memory-bound at four times as many rows. A
//! scan of the codes only narrows the search. The bound on its error is proven, so the exact k best are always among
//! the slots that it returns.

use super::Hit;
use super::kernel::Kernel;
use super::top::Top;

/// Number of vectors above which the codes are worth a quarter more memory. A search of 100 rows takes 4.1 us without
/// and 4.2 us with codes, of 1,000 rows 39 and 21 us, of 10,000 rows 774 and 196 us, of 100,000 rows 10.9 and 2.2 ms
/// (384 dimensions, one core with AVX-512, `benches/search.rs`).
pub(super) const CODES_ABOVE: usize = 1_000;

/// Maximum dimensions at which code sums fit in 32 bits with a query of 8 bits or more.
pub(super) const MOST_DIMENSIONS: usize = 1 << 16;

/// Maximum absolute value of a code, so that the range is symmetric.
const CODE_MAX: f32 = 127.0;

/// Number of rows scored in one kernel call.
const BATCH: usize = 256;

/// Margin for the rounding of f32 sums, which the error bound leaves out.
const ROUNDING: f32 = 1e-5;

/// Byte codes of all rows. Each row is approximately `scale * codes`.
#[derive(Debug)]
pub(super) struct Codes {
    codes: Vec<i8>,
    scales: Vec<f32>,
    /// Maximum distance between a row and the vector that its codes represent.
    error: f32,
}

impl Codes {
    pub(super) fn new(dimensions: usize, rows: &[f32]) -> Self {
        let slots = rows.len() / dimensions;
        let mut codes = Vec::with_capacity(rows.len());
        let mut scales = Vec::with_capacity(slots);
        let mut error = 0.0_f32;
        for row in rows.chunks_exact(dimensions) {
            let scale = encode(row, &mut codes);
            let coded = &codes[codes.len() - dimensions..];
            error = error.max(distance(row, coded.iter().map(|code| f32::from(*code) * scale)));
            scales.push(scale);
        }
        Self { codes, scales, error }
    }

    /// Returns slots, in the given order, that include the `k` best of `slots`.
    pub(super) fn narrow(
        &self,
        kernel: Kernel,
        query: &[f32],
        k: usize,
        mut slots: impl Iterator<Item = u32>,
    ) -> Vec<u32> {
        let (query, unit, query_error) = widen(query);
        // Bound of the error: |qx - q'x'| <= |q||x - x'| + |q - q'||x'|, with |q| = 1 and |x'| <= 1 + error. It applies
        // twice: once to the row at the bar, once to the row that might belong above it.
        let margin = 2.0 * (self.error * 1.01 + query_error * (1.01 + self.error) + ROUNDING);
        let mut top = Top::new(k);
        let mut near: Vec<Hit> = Vec::with_capacity(4 * k);
        let mut batch = [0; BATCH];
        let mut sums = [0; BATCH];
        loop {
            let batch = fill(&mut batch, &mut slots);
            if batch.is_empty() {
                break;
            }
            kernel.code_dots(&self.codes, batch, &query, &mut sums);
            for (slot, sum) in batch.iter().zip(sums) {
                let overlap = sum as f32 * self.scales[*slot as usize] * unit;
                if overlap >= top.bar() - margin {
                    let hit = Hit { slot: *slot, overlap };
                    top.offer(hit);
                    near.push(hit);
                }
            }
        }
        let bar = top.bar() - margin;
        near.into_iter().filter(|hit| hit.overlap >= bar).map(|hit| hit.slot).collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.codes.capacity() + self.scales.capacity() * size_of::<f32>()
    }
}

/// Moves slots into `batch` and returns the filled part, which is empty once there are no more.
pub(super) fn fill<'a, const N: usize>(
    batch: &'a mut [u32; N],
    slots: &mut impl Iterator<Item = u32>,
) -> &'a [u32] {
    let mut filled = 0;
    for (place, slot) in batch.iter_mut().zip(slots) {
        *place = slot;
        filled += 1;
    }
    &batch[..filled]
}

/// Appends the codes of a unit vector and returns their scale.
pub(super) fn encode(vector: &[f32], codes: &mut Vec<i8>) -> f32 {
    let scale = greatest(vector) / CODE_MAX;
    codes.extend(vector.iter().map(|value| (value / scale).round() as i8));
    scale
}

/// Returns the query in 16-bit codes, the value of one step, and the distance between the codes and the query.
fn widen(query: &[f32]) -> (Vec<i16>, f32, f32) {
    let steps = (i32::MAX / CODE_MAX as i32 / query.len() as i32).min(i32::from(i16::MAX));
    let unit = greatest(query) / steps as f32;
    let codes: Vec<i16> = query.iter().map(|value| (value / unit).round() as i16).collect();
    let error = distance(query, codes.iter().map(|code| f32::from(*code) * unit));
    (codes, unit, error)
}

fn greatest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |greatest, value| greatest.max(value.abs()))
}

fn distance(vector: &[f32], coded: impl Iterator<Item = f32>) -> f32 {
    let squared: f32 = vector.iter().zip(coded).map(|(a, b)| (a - b) * (a - b)).sum();
    squared.sqrt()
}
