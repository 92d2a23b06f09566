//! f32 weights and activations.

use pulp::Simd;

use super::kernel::{Format, PANEL};
use super::vectors::{Product, Tile};
use crate::device::NumberFormat;

/// One input for 64 columns.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Step([f32; PANEL]);

/// Storage format of weights in f32.
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
    /// Computes as many vectors of columns at a time as leave registers for their weights: four with 16 lanes, where
    /// there are 32 registers, or else two.
    #[inline(always)]
    fn tile<S: Simd, const N: usize>(product: &mut Product<'_, Self>, simd: S, first: usize) {
        if S::F32_LANES == 16 {
            columns::<S, N, 4>(product, simd, first, 0);
        } else {
            for column in (0..PANEL).step_by(2 * S::F32_LANES) {
                columns::<S, N, 2>(product, simd, first, column);
            }
        }
    }
}

/// Computes `V` vectors of columns.
#[inline(always)]
fn columns<S: Simd, const N: usize, const V: usize>(
    product: &mut Product<'_, F32>,
    simd: S,
    first: usize,
    column: usize,
) {
    let columns = column..column + V * S::F32_LANES;
    let rows = product.rows.take::<N>(first);
    let mut sums = [[simd.splat_f32s(0.0); V]; N];
    for (k, step) in product.panel.steps.iter().enumerate() {
        let (weights, _) = S::as_simd_f32s(&step.0[columns.clone()]);
        for (row, sums) in rows.iter().zip(&mut sums) {
            let value = simd.splat_f32s(row[k]);
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum = simd.mul_add_f32s(value, weight, *sum);
            }
        }
    }
    let (bias, _) = S::as_simd_f32s(&product.panel.bias[columns.clone()]);
    for (r, sums) in sums.into_iter().enumerate() {
        let (out, _) = S::as_mut_simd_f32s(&mut product.out[first + r][columns.clone()]);
        for ((out, sum), &bias) in out.iter_mut().zip(sums).zip(bias) {
            *out = simd.add_f32s(sum, bias);
        }
    }
}
