//! f32 weights and activations.

use pulp::{Arch, Simd, WithSimd};

use super::kernel::{
    Format, Kernel, NO_GROUPS, PANEL, Panel, PanelRow, RowScale, Rows, blocks, for_rows,
};
use crate::device::NumberFormat;

/// Rows of one tile: 12 sums, 2 weights and 1 activation of AVX2's 16 registers.
const ROWS: usize = 6;

/// One input for 64 columns.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Step([f32; PANEL]);

/// How weights are kept.
pub(super) struct F32;

impl Format for F32 {
    type Step = Step;
    const EMPTY: Step = Step([0.0; PANEL]);
    const STEP: usize = 1;
    const NAME: NumberFormat = NumberFormat::F32;

    fn pack(step: &mut Step, index: usize, weight: f32, _: f32) -> f32 {
        step.0[index] = weight;
        weight
    }
}

/// Runs everywhere.
#[derive(Clone, Copy)]
pub(super) struct F32Vectors(pub(super) Arch);

impl Kernel for F32Vectors {
    type Format = F32;
    type Value = f32;
    const GROUP: usize = NO_GROUPS;

    fn keep(self, row: &[f32], kept: &mut [f32], _: &mut [RowScale]) {
        kept.copy_from_slice(row);
    }

    fn multiply(self, rows: Rows<'_, f32>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
        self.0.dispatch(Product { rows, panel, out });
    }
}

struct Product<'a> {
    rows: Rows<'a, f32>,
    panel: Panel<'a, Step>,
    out: &'a mut [PanelRow],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (start, len) in blocks(self.out.len(), ROWS) {
            for_rows!(len, [1, 2, 3, 4, 5], 6, self.tile::<S, N>(simd, start));
        }
    }
}

impl Product<'_> {
    /// `N` rows by the panel, two vectors of columns at a time.
    #[inline(always)]
    fn tile<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let steps = self.panel.steps;
        let rows = self.rows.take::<N>(first);
        let width = 2 * S::F32_LANES;
        for column in (0..PANEL).step_by(width) {
            let mut sums = [[simd.splat_f32s(0.0); 2]; N];
            for (k, step) in steps.iter().enumerate() {
                let (weights, _) = S::as_simd_f32s(&step.0[column..column + width]);
                for (row, sums) in rows.iter().zip(&mut sums) {
                    let value = simd.splat_f32s(row[k]);
                    sums[0] = simd.mul_add_f32s(value, weights[0], sums[0]);
                    sums[1] = simd.mul_add_f32s(value, weights[1], sums[1]);
                }
            }
            let (bias, _) = S::as_simd_f32s(&self.panel.bias[column..column + width]);
            for (r, sums) in sums.into_iter().enumerate() {
                let out = &mut self.out[first + r][column..column + width];
                let (out, _) = S::as_mut_simd_f32s(out);
                out[0] = simd.add_f32s(sums[0], bias[0]);
                out[1] = simd.add_f32s(sums[1], bias[1]);
            }
        }
    }
}
