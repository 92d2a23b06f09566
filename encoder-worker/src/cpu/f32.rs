//! f32 weights and activations.

use pulp::Simd;

use super::kernel::{Format, PANEL};
use super::vectors::{Product, Tile};
use crate::device::NumberFormat;

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

impl Tile for F32 {
    /// Two vectors of columns at a time.
    #[inline(always)]
    fn tile<S: Simd, const N: usize>(product: &mut Product<'_, Self>, simd: S, first: usize) {
        let steps = product.panel.steps;
        let rows = product.rows.take::<N>(first);
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
            let (bias, _) = S::as_simd_f32s(&product.panel.bias[column..column + width]);
            for (r, sums) in sums.into_iter().enumerate() {
                let out = &mut product.out[first + r][column..column + width];
                let (out, _) = S::as_mut_simd_f32s(out);
                out[0] = simd.add_f32s(sums[0], bias[0]);
                out[1] = simd.add_f32s(sums[1], bias[1]);
            }
        }
    }
}
