//! bf16 products on CPUs without bf16 instructions. Weights are widened to f32 when they are read, which halves the
//! memory traffic but not the arithmetic.

use pulp::Simd;

use super::{Bf16, STEP, Step};
use crate::cpu::kernel::PANEL;
use crate::cpu::vectors::{Product, Tile};

impl Tile for Bf16 {
    #[inline(always)]
    fn tile<S: Simd, const N: usize>(product: &mut Product<'_, Self>, simd: S, first: usize) {
        let rows = product.rows.take::<N>(first);
        // One vector of columns at a time: the weights of its even and odd inputs lie side by side.
        for column in (0..PANEL).step_by(S::F32_LANES) {
            let mut sums = [simd.splat_f32s(0.0); N];
            for (k, step) in product.panel.steps.iter().enumerate() {
                let (even, odd) = widen::<S>(simd, step, column);
                for (row, sum) in rows.iter().zip(&mut sums) {
                    *sum = simd.mul_add_f32s(simd.splat_f32s(row[STEP * k]), even, *sum);
                    *sum = simd.mul_add_f32s(simd.splat_f32s(row[STEP * k + 1]), odd, *sum);
                }
            }
            let bias = &product.panel.bias[column..column + S::F32_LANES];
            let bias = simd.partial_load_f32s(bias);
            for (r, sum) in sums.into_iter().enumerate() {
                let out = &mut product.out[first + r][column..column + S::F32_LANES];
                simd.partial_store_f32s(out, simd.add_f32s(sum, bias));
            }
        }
    }
}

/// Widens the weights of two inputs, for as many columns as a vector has lanes.
#[inline(always)]
fn widen<S: Simd>(simd: S, step: &Step, column: usize) -> (S::f32s, S::f32s) {
    let mut pairs = [0_u32; 16];
    let weights = &step.0[STEP * column..STEP * (column + S::F32_LANES)];
    for (pair, weights) in pairs.iter_mut().zip(weights.chunks_exact(STEP)) {
        *pair = u32::from(weights[0]) | u32::from(weights[1]) << 16;
    }
    let pairs = simd.partial_load_u32s(&pairs[..S::U32_LANES]);
    let even = simd.wrapping_dyn_shl_u32s(pairs, simd.splat_u32s(16));
    let odd = simd.and_u32s(pairs, simd.splat_u32s(0xffff_0000));
    (simd.transmute_f32s_u32s(even), simd.transmute_f32s_u32s(odd))
}
