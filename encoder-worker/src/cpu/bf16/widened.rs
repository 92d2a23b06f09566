//! bf16 products where the CPU has none: weights are widened to f32 on the way, which halves what is
//! read from memory but not the arithmetic. Activations stay f32, as nothing is gained by rounding them.

use pulp::{Arch, Simd, WithSimd};

use super::{Bf16, STEP, Step};
use crate::cpu::kernel::{
    Kernel, NO_GROUPS, PANEL, Panel, PanelRow, RowScale, Rows, blocks, for_rows,
};

/// Rows of one tile: 12 sums, 2 weights and 1 activation of AVX2's 16 registers.
const ROWS: usize = 6;

/// Runs everywhere.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Bf16Widened(pub(in crate::cpu) Arch);

impl Kernel for Bf16Widened {
    type Format = Bf16;
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
    #[inline(always)]
    fn tile<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let rows = self.rows.take::<N>(first);
        // One vector of columns at a time: its even and odd inputs' weights lie side by side.
        for column in (0..PANEL).step_by(S::F32_LANES) {
            let mut sums = [simd.splat_f32s(0.0); N];
            for (k, step) in self.panel.steps.iter().enumerate() {
                let (even, odd) = widen::<S>(simd, step, column);
                for (row, sum) in rows.iter().zip(&mut sums) {
                    *sum = simd.mul_add_f32s(simd.splat_f32s(row[STEP * k]), even, *sum);
                    *sum = simd.mul_add_f32s(simd.splat_f32s(row[STEP * k + 1]), odd, *sum);
                }
            }
            let bias = &self.panel.bias[column..column + S::F32_LANES];
            let bias = simd.partial_load_f32s(bias);
            for (r, sum) in sums.into_iter().enumerate() {
                let out = &mut self.out[first + r][column..column + S::F32_LANES];
                simd.partial_store_f32s(out, simd.add_f32s(sum, bias));
            }
        }
    }
}

/// The two inputs' weights of as many columns as a vector has lanes.
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
