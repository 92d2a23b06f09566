//! 8-bit products with AVX-512 VNNI: `vpdpbusd` multiplies 64 pairs and adds them in fours.

mod keep;

use std::arch::x86_64::*;

use super::{GROUP, Int8, STEP, Step};
use crate::cpu::isa::Isa;
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{Columns, Kernel, Panel, PanelRow, RowScale, Rows, blocks, for_rows};

/// Rows of one tile: 24 sums, 4 weights and 1 activation of the 32 registers.
const ROWS: usize = 6;

/// Exists only where the CPU has the instructions.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Int8Avx512(());

impl Int8Avx512 {
    pub(in crate::cpu) fn new(isa: Isa) -> Option<Self> {
        isa.avx512_vnni.then_some(Self(()))
    }
}

impl Kernel for Int8Avx512 {
    type Format = Int8;
    type Value = u8;
    const GROUP: usize = GROUP;

    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    fn keep(self, from: Blocks<'_>, to: KeptRows<'_, u8>) {
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        unsafe { keep::keep(from, to) }
    }

    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    fn multiply(self, rows: Rows<'_, u8>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
        for (index, (first, len)) in blocks(out.len(), ROWS).enumerate() {
            let out = &mut out[first..first + len];
            let ahead = Ahead::of_block(panel.ahead, index);
            // SAFETY: `Isa` found these features, or there would be no `Self`.
            unsafe {
                for_rows!(len, [1, 2, 3, 4, 5], 6, tile::<N>((rows, first), panel, ahead, out));
            }
        }
    }
}

/// What a block fetches for the panel after this one. The first block waits for its own weights; the
/// second and the third, which have them near, fetch half of each later step.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    steps: &'a [Step],
    half: usize,
}

impl<'a> Ahead<'a> {
    fn of_block(steps: &'a [Step], block: usize) -> Self {
        match block {
            1 | 2 => Self { steps, half: block - 1 },
            _ => Self { steps: &[], half: 0 },
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fetch(&self, step: usize) {
        if let Some(step) = self.steps.get(step) {
            let lines = &step.0[self.half * size_of::<Step>() / 2..];
            _mm_prefetch::<_MM_HINT_T1>(&raw const lines[0]);
            _mm_prefetch::<_MM_HINT_T1>(&raw const lines[64]);
        }
    }
}

/// `N` rows from `first` on by a whole panel.
#[target_feature(enable = "avx512f,avx512vnni")]
#[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn tile<const N: usize>(
    (rows, first): (Rows<'_, u8>, usize),
    panel: Panel<'_, Step>,
    ahead: Ahead<'_>,
    out: &mut [PanelRow],
) {
    let values = rows.take_steps::<N, STEP>(first, panel.steps.len());
    out.fill(*panel.bias);
    for (g, steps) in panel.steps.chunks(panel.group_steps).enumerate() {
        let mut sums = [[_mm512_setzero_si512(); 4]; N];
        for (k, step) in (g * panel.group_steps..).zip(steps) {
            let weights = load_step(step);
            ahead.fetch(k);
            for r in 0..N {
                // SAFETY: each row was cut to as many steps as the panel has.
                let value = unsafe { *values[r].get_unchecked(k) };
                let value = _mm512_set1_epi32(i32::from_le_bytes(value));
                for j in 0..4 {
                    sums[r][j] = _mm512_dpbusd_epi32(sums[r][j], value, weights[j]);
                }
            }
        }
        for r in 0..N {
            let scale = rows.scales[(first + r) * panel.groups.len() + g];
            add(&sums[r], scale, &panel.groups[g], &mut out[r]);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn add(sums: &[__m512i; 4], row: RowScale, columns: &Columns, out: &mut PanelRow) {
    let (scale, zero) = (_mm512_set1_ps(row.scale), _mm512_set1_ps(row.zero));
    for j in 0..4 {
        let offset = _mm512_fmadd_ps(zero, load(&columns.sum, j), load(out, j));
        let scale = _mm512_mul_ps(scale, load(&columns.scale, j));
        store(out, j, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[j]), scale, offset));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn load_step(step: &Step) -> [__m512i; 4] {
    let from: *const __m512i = step.0.as_ptr().cast();
    // SAFETY: a step is four times 64 bytes, aligned to 64. No closure: it would not be inlined.
    unsafe {
        [
            _mm512_load_si512(from),
            _mm512_load_si512(from.add(1)),
            _mm512_load_si512(from.add(2)),
            _mm512_load_si512(from.add(3)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn load<const L: usize>(from: &[f32; L], vector: usize) -> __m512 {
    let from = &from[16 * vector..16 * vector + 16];
    // SAFETY: the slice holds 16 floats.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "stores have no safe form")]
fn store(to: &mut PanelRow, vector: usize, value: __m512) {
    let to = &mut to[16 * vector..16 * vector + 16];
    // SAFETY: the slice holds 16 floats.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
}
