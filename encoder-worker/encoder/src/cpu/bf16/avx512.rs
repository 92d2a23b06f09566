//! bf16 products with AVX-512 BF16: `vdpbf16ps` multiplies 32 pairs and adds them in twos.

use std::arch::x86_64::*;

use super::{Bf16, STEP, Step};
use crate::cpu::avx512::{ROWS, each_row, fetch, for_tiles, load, load_half, spread, store};
use crate::cpu::isa::Isa;
use crate::cpu::kept::{Blocks, KeptRows, LANES};
use crate::cpu::kernel::{Kernel, NO_GROUPS, Panel, PanelRow, Rows, blocks, for_rows};

/// Kernel that exists only if the CPU has the instructions.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Bf16Avx512(());

impl Bf16Avx512 {
    pub(in crate::cpu) fn new(isa: Isa) -> Option<Self> {
        isa.avx512_bf16.then_some(Self(()))
    }
}

impl Kernel for Bf16Avx512 {
    type Format = Bf16;
    type Value = u16;
    const GROUP: usize = NO_GROUPS;

    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    fn keep(self, from: Blocks<'_>, to: KeptRows<'_, u16>) {
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        unsafe { keep(from, to) }
    }

    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    fn multiply(self, rows: Rows<'_, u16>, panel: Panel<'_, Step>, out: &mut [PanelRow]) {
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        for_tiles!(panel, out, |first, some| unsafe { tile::<N>((rows, first), panel, some) });
    }
}

/// Rounds like [`super::from_f32`].
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "stores have no safe form")]
fn keep(from: Blocks<'_>, mut to: KeptRows<'_, u16>) {
    for row in 0..from.rows {
        for (index, kept) in to.values(row).as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let rounded = _mm512_cvtneps_pbh(load::<LANES>(from.lanes(row, index * LANES), 0));
            // SAFETY: the vectors are the same 32 bytes, and as many are in the array.
            unsafe {
                let bits = std::mem::transmute::<__m256bh, __m256i>(rounded);
                _mm256_storeu_si256(kept.as_mut_ptr().cast(), bits);
            }
        }
    }
}

/// Multiplies `N` rows from `first` on by a whole panel, half of its columns at a time.
#[target_feature(enable = "avx512f,avx512bf16")]
fn tile<const N: usize>(
    rows: (Rows<'_, u16>, usize),
    panel: Panel<'_, Step>,
    out: &mut [PanelRow],
) {
    half::<N, 0>(rows, panel, out);
    half::<N, 1>(rows, panel, out);
}

/// Multiplies by half `HALF` of a panel's columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
fn half<const N: usize, const HALF: usize>(
    (rows, first): (Rows<'_, u16>, usize),
    panel: Panel<'_, Step>,
    out: &mut [PanelRow],
) {
    let values = &rows.values[first * rows.inputs..(first + N) * rows.inputs];
    assert!(STEP * panel.steps.len() <= rows.inputs, "rows are as long as the panel is high");
    let mut sums = [[_mm512_setzero_ps(); 2]; N];
    for (k, step) in panel.steps.iter().enumerate() {
        let weights = load_half::<_, HALF>(step);
        let weights = [of_bits(weights[0]), of_bits(weights[1])];
        fetch::<_, HALF>(&panel, k);
        each_row!(N, |r| {
            // SAFETY: there are `N` rows of as many steps as the panel has.
            let value = of_bits(unsafe { spread(values, r * rows.inputs + STEP * k) });
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, weights[0]);
            sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, weights[1]);
        });
    }
    each_row!(N, |r| {
        let first = _mm512_add_ps(sums[r][0], load(panel.bias, 2 * HALF));
        let second = _mm512_add_ps(sums[r][1], load(panel.bias, 2 * HALF + 1));
        store(&mut out[r], 2 * HALF, first);
        store(&mut out[r], 2 * HALF + 1, second);
    });
}

/// Reinterprets bits as pairs of bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "the vector type has no other constructor")]
pub(in crate::cpu) fn of_bits(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes of plain bits.
    unsafe { std::mem::transmute(bits) }
}
