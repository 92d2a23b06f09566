//! bf16 products with AVX-512 BF16: `vdpbf16ps` multiplies 32 pairs and adds them in twos.

use std::arch::x86_64::*;

use pulp::Arch;

use super::{Bf16, STEP, Step};
use crate::cpu::isa::{Isa, vectorised};
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{Kernel, NO_GROUPS, PANEL, Panel, PanelRow, Rows, blocks, for_rows};

/// Rows of one tile: 24 sums, 4 weights and 1 activation of the 32 registers.
const ROWS: usize = 6;

/// Exists only where the CPU has the instructions.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Bf16Avx512(Arch);

impl Bf16Avx512 {
    pub(in crate::cpu) fn new(isa: Isa) -> Option<Self> {
        isa.avx512_bf16.then_some(Self(isa.arch))
    }
}

impl Kernel for Bf16Avx512 {
    type Format = Bf16;
    type Value = u16;
    const GROUP: usize = NO_GROUPS;

    fn keep(self, from: Blocks<'_>, to: KeptRows<'_, u16>) {
        let mut to = Some(to);
        vectorised(
            self.0,
            #[inline(always)]
            || {
                if let Some(to) = to.take() {
                    super::keep(from, to);
                }
            },
        );
    }

    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    fn multiply(self, rows: Rows<'_, u16>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
        for (start, len) in blocks(out.len(), ROWS) {
            let out = &mut out[start..start + len];
            // SAFETY: `Isa` found these features, or there would be no `Self`.
            unsafe { for_rows!(len, [1, 2, 3, 4, 5], 6, tile::<N>(rows, start, panel, out)) }
        }
    }
}

/// `N` rows from `first` on by a whole panel.
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn tile<const N: usize>(
    rows: Rows<'_, u16>,
    first: usize,
    panel: Panel<'_, Step>,
    out: &mut [PanelRow],
) {
    let values = rows.take_steps::<N, STEP>(first, panel.steps.len());
    let mut sums = [[_mm512_setzero_ps(); 4]; N];
    for (k, step) in panel.steps.iter().enumerate() {
        let weights = load_step(step);
        for r in 0..N {
            // SAFETY: each row was cut to as many steps as the panel has.
            let value = pair(unsafe { *values[r].get_unchecked(k) });
            for j in 0..4 {
                sums[r][j] = _mm512_dpbf16_ps(sums[r][j], value, weights[j]);
            }
        }
    }
    for r in 0..N {
        finish(&sums[r], panel.bias, &mut out[r]);
    }
}

/// Two values in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "the vector type has no other constructor")]
fn pair([low, high]: [u16; STEP]) -> __m512bh {
    let lane = u32::from(low) | u32::from(high) << 16;
    // SAFETY: both are 64 bytes of plain bits.
    unsafe { std::mem::transmute(_mm512_set1_epi32(lane as i32)) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "loads and stores have no safe form")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn finish(sums: &[__m512; 4], bias: &PanelRow, out: &mut PanelRow) {
    for j in 0..4 {
        let bias = &bias[16 * j..16 * j + 16];
        let out = &mut out[16 * j..16 * j + 16];
        // SAFETY: both slices hold 16 floats.
        unsafe {
            _mm512_storeu_ps(
                out.as_mut_ptr(),
                _mm512_add_ps(sums[j], _mm512_loadu_ps(bias.as_ptr())),
            );
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn load_step(step: &Step) -> [__m512bh; 4] {
    const { assert!(size_of::<Step>() == 4 * size_of::<__m512bh>() && PANEL == 64) };
    let from: *const __m512i = step.0.as_ptr().cast();
    // SAFETY: a step is four times 64 bytes, aligned to 64; any bits are a vector of bf16. No closure: it
    // would not be inlined.
    unsafe {
        let vectors = [
            _mm512_load_si512(from),
            _mm512_load_si512(from.add(1)),
            _mm512_load_si512(from.add(2)),
            _mm512_load_si512(from.add(3)),
        ];
        std::mem::transmute::<[__m512i; 4], [__m512bh; 4]>(vectors)
    }
}
