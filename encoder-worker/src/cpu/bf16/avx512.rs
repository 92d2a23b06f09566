//! bf16 products with AVX-512 BF16: `vdpbf16ps` multiplies 32 pairs and adds them in twos.

use std::arch::x86_64::*;

use pulp::Arch;

use super::{Bf16, STEP, Step};
use crate::cpu::avx512::{ROWS, each_row, fetch, for_tiles, load, load_half, spread, store};
use crate::cpu::isa::{Isa, vectorised};
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{Kernel, NO_GROUPS, Panel, PanelRow, Rows, blocks, for_rows};

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
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        for_tiles!(panel, out, |first, some| unsafe { tile::<N>((rows, first), panel, some) });
    }
}

/// `N` rows from `first` on by a whole panel, half of its columns at a time.
#[target_feature(enable = "avx512f,avx512bf16")]
fn tile<const N: usize>(
    rows: (Rows<'_, u16>, usize),
    panel: Panel<'_, Step>,
    out: &mut [PanelRow],
) {
    half::<N, 0>(rows, panel, out);
    half::<N, 1>(rows, panel, out);
}

/// Half `HALF` of a panel's columns.
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
        let weights = [pairs(weights[0]), pairs(weights[1])];
        fetch::<_, HALF>(&panel, k);
        each_row!(N, |r| {
            // SAFETY: there are `N` rows of as many steps as the panel has.
            let value = pairs(unsafe { spread(values, r * rows.inputs + STEP * k) });
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

/// The same bits as pairs of bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "the vector type has no other constructor")]
fn pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes of plain bits.
    unsafe { std::mem::transmute(bits) }
}
