//! 8-bit products with AVX-512 VNNI: `vpdpbusd` multiplies 64 pairs and adds them in fours.

mod keep;

use std::arch::x86_64::*;

use super::{GROUP, Int8, STEP, Step};
use crate::cpu::avx512::{ROWS, each_row, fetch, for_tiles, load, load_half, spread, store};
use crate::cpu::isa::Isa;
use crate::cpu::kept::{Blocks, KeptRows};
use crate::cpu::kernel::{Columns, Kernel, Panel, PanelRow, RowScale, Rows, blocks, for_rows};

/// Kernel that exists only if the CPU has the instructions.
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
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        for_tiles!(panel, out, |first, some| unsafe { tile::<N>((rows, first), panel, some) });
    }
}

/// Multiplies `N` rows from `first` on by a whole panel, half of its columns at a time.
#[target_feature(enable = "avx512f,avx512vnni")]
fn tile<const N: usize>(rows: (Rows<'_, u8>, usize), panel: Panel<'_, Step>, out: &mut [PanelRow]) {
    half::<N, 0>(rows, panel, out);
    half::<N, 1>(rows, panel, out);
}

/// Multiplies by half `HALF` of a panel's columns.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
#[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
fn half<const N: usize, const HALF: usize>(
    (rows, first): (Rows<'_, u8>, usize),
    panel: Panel<'_, Step>,
    out: &mut [PanelRow],
) {
    // One pointer and a stride, because one slice per row would not fit into the registers.
    let values = &rows.values[first * rows.inputs..(first + N) * rows.inputs];
    assert!(STEP * panel.steps.len() <= rows.inputs, "rows are as long as the panel is high");
    for (g, steps) in panel.steps.chunks(panel.group_steps).enumerate() {
        let mut sums = [[_mm512_setzero_si512(); 2]; N];
        for (k, step) in (g * panel.group_steps..).zip(steps) {
            let weights = load_half::<_, HALF>(step);
            fetch::<_, HALF>(&panel, k);
            each_row!(N, |r| {
                // SAFETY: there are `N` rows of as many steps as the panel has.
                let value = unsafe { spread(values, r * rows.inputs + STEP * k) };
                sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], value, weights[0]);
                sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], value, weights[1]);
            });
        }
        let columns = &panel.groups[g];
        let groups = panel.groups.len();
        each_row!(N, |r| {
            let row = rows.scales[(first + r) * groups + g];
            let before = if g == 0 { panel.bias } else { &out[r] };
            let result = add([sums[r][0], sums[r][1]], row, columns, (before, 2 * HALF));
            store(&mut out[r], 2 * HALF, result[0]);
            store(&mut out[r], 2 * HALF + 1, result[1]);
        });
    }
}

/// Adds two vectors of a group's sums to a row's previous results.
#[inline]
#[target_feature(enable = "avx512f")]
fn add(
    sums: [__m512i; 2],
    row: RowScale,
    columns: &Columns,
    (before, vector): (&PanelRow, usize),
) -> [__m512; 2] {
    let scale = _mm512_set1_ps(row.scale);
    let zero = _mm512_set1_ps(row.zero);
    let first = _mm512_fmadd_ps(zero, load(&columns.sum, vector), load(before, vector));
    let second = _mm512_fmadd_ps(zero, load(&columns.sum, vector + 1), load(before, vector + 1));
    let by_first = _mm512_mul_ps(scale, load(&columns.scale, vector));
    let by_second = _mm512_mul_ps(scale, load(&columns.scale, vector + 1));
    [
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[0]), by_first, first),
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[1]), by_second, second),
    ]
}
