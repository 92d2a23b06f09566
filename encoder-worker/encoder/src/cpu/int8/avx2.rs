//! 8-bit products on 256 bits: with AVX-VNNI's dot product, or with AVX2 alone.
//!
//! AVX2's `vpmaddubsw` adds pairs of products in 16 bits and saturates. So activations have only 7 bits there, because
//! 2 * 127 * 127 fits. Half as many share a scale, to make up for the lost bit.

use std::arch::x86_64::*;

use pulp::Arch;

use super::{GROUP, Int8, STEP, Step};
use crate::cpu::isa::Isa;
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{
    Columns, Kernel, PANEL, Panel, PanelRow, RowScale, Rows, blocks, for_rows,
};

/// Rows of one tile: 8 sums, 2 weights, 1 activation and the temporaries of a product fit into the 16 registers.
const ROWS: usize = 4;

/// Columns of one tile: two vectors of eight sums.
const TILE: usize = 16;

/// Defines a kernel on 256 bits from its name, CPU flag, levels, group, features, dot product and tile.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $has:ident, $levels:literal, $group:expr, $features:literal, $dot:ident, $tile:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate::cpu) struct $name(Arch);

        impl $name {
            pub(in crate::cpu) fn new(isa: Isa) -> Option<Self> {
                isa.$has.then_some(Self(isa.arch))
            }
        }

        impl Kernel for $name {
            type Format = Int8;
            type Value = u8;
            const GROUP: usize = $group;


            fn keep(self, from: Blocks<'_>, to: KeptRows<'_, u8>) {
                super::keep(self.0, $levels, from, to);
            }

            #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
            fn multiply(self, rows: Rows<'_, u8>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
                for (start, len) in blocks(out.len(), ROWS) {
                    let out = &mut out[start..start + len];
                    // SAFETY: `Isa` found these features, or there would be no `Self`.
                    unsafe { for_rows!(len, [1, 2, 3], 4, $tile::<N>(rows, start, panel, out)) }
                }
            }
        }

        /// Multiplies `N` rows from `first` on by a whole panel, 16 columns at a time.
        #[target_feature(enable = $features)]
        #[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
        #[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
        fn $tile<const N: usize>(
            rows: Rows<'_, u8>,
            first: usize,
            panel: Panel<'_, Step>,
            out: &mut [PanelRow],
        ) {
            out.fill(*panel.bias);
            for column in (0..PANEL).step_by(TILE) {
                let values = rows.take_steps::<N, STEP>(first, panel.steps.len());
                for (g, steps) in panel.steps.chunks(panel.group_steps).enumerate() {
                    let mut sums = [[_mm256_setzero_si256(); 2]; N];
                    for (k, step) in (g * panel.group_steps..).zip(steps) {
                        let weights = load_weights(step, column);
                        for r in 0..N {
                            // SAFETY: each row was cut to as many steps as the panel has.
                            let value = unsafe { *values[r].get_unchecked(k) };
                            let value = _mm256_set1_epi32(i32::from_le_bytes(value));
                            for j in 0..2 {
                                sums[r][j] = $dot(sums[r][j], value, weights[j]);
                            }
                        }
                    }
                    for r in 0..N {
                        let scale = rows.scales[(first + r) * panel.groups.len() + g];
                        let out = &mut out[r][column..column + TILE];
                        add(&sums[r], scale, (&panel.groups[g], column), out);
                    }
                }
            }
        }
    };
}

kernel! {
    /// Kernel that exists only if the CPU has AVX2 and FMA.
    Int8Avx2, avx2, 127.0, GROUP / 2, "avx2,fma", dot_avx2, tile_avx2
}
kernel! {
    /// Kernel that exists only if the CPU has AVX-VNNI.
    Int8AvxVnni, avx_vnni, 255.0, GROUP, "avx2,fma,avxvnni", dot_avx_vnni, tile_avx_vnni
}

#[inline]
#[target_feature(enable = "avx2")]
fn dot_avx2(sum: __m256i, values: __m256i, weights: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(values, weights);
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2,avxvnni")]
fn dot_avx_vnni(sum: __m256i, values: __m256i, weights: __m256i) -> __m256i {
    _mm256_dpbusd_avx_epi32(sum, values, weights)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn add(sums: &[__m256i; 2], row: RowScale, columns: (&Columns, usize), out: &mut [f32]) {
    let (columns, first) = columns;
    let scale = _mm256_set1_ps(row.scale);
    let zero = _mm256_set1_ps(row.zero);
    for j in 0..2 {
        let at = first + 8 * j;
        let to = &mut out[8 * j..8 * j + 8];
        let offset = _mm256_fmadd_ps(zero, load(&columns.sum[at..]), load(to));
        let scale = _mm256_mul_ps(scale, load(&columns.scale[at..]));
        store(
            &mut out[8 * j..8 * j + 8],
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[j]), scale, offset),
        );
    }
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn load_weights(step: &Step, column: usize) -> [__m256i; 2] {
    let from = &step.0[STEP * column..STEP * (column + TILE)];
    let first = from[..32].as_ptr();
    let second = from[32..].as_ptr();
    // SAFETY: the slice holds twice 32 bytes.
    unsafe { [_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(second.cast())] }
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn load(from: &[f32]) -> __m256 {
    let from = &from[..8];
    // SAFETY: the slice holds 8 floats.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "stores have no safe form")]
fn store(to: &mut [f32], value: __m256) {
    let to = &mut to[..8];
    // SAFETY: the slice holds 8 floats.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
}
