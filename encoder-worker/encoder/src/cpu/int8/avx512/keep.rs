//! Conversion of activations to 8 bits with AVX-512. It does the same as `int8::keep` for all CPUs, but a row of 384 or
//! a group of 128 stays in registers from its range to its bytes.

use std::arch::x86_64::*;

use crate::cpu::avx512::{each_row, load};
use crate::cpu::kept::{Blocks, KeptRows, LANES};
use crate::cpu::kernel::RowScale;

/// Greatest kept value.
const LEVELS: f32 = 255.0;

/// Keeps each group of each row on the scale of its range.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn keep(from: Blocks<'_>, mut to: KeptRows<'_, u8>) {
    for row in 0..from.rows {
        for group in 0..to.groups() {
            let columns = to.columns(group);
            to.scales(row)[group] = {
                let start = columns.start;
                let len = columns.len();
                let kept = &mut to.values(row)[columns];
                match len {
                    384 => keep_group::<6>(&from, row, start, kept),
                    128 => keep_group::<2>(&from, row, start, kept),
                    _ => keep_odd_group(&from, row, start, kept),
                }
            };
        }
    }
}

/// Keeps `Q` times four vectors of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn keep_group<const Q: usize>(
    from: &Blocks<'_>,
    row: usize,
    column: usize,
    kept: &mut [u8],
) -> RowScale {
    let mut values = [[_mm512_setzero_ps(); 4]; Q];
    let mut low = _mm512_set1_ps(f32::INFINITY);
    let mut high = _mm512_set1_ps(f32::NEG_INFINITY);
    each_row!(Q, |q| {
        let four = load_four(from.lanes(row, column + q * 4 * LANES));
        let [a, b, c, d] = four;
        let least = _mm512_min_ps(a, b);
        let less = _mm512_min_ps(c, d);
        let most = _mm512_max_ps(a, b);
        let more = _mm512_max_ps(c, d);
        low = _mm512_min_ps(low, _mm512_min_ps(least, less));
        high = _mm512_max_ps(high, _mm512_max_ps(most, more));
        values[q] = four;
    });
    let scale = Scale::of(low, high);
    let kept = kept.as_chunks_mut::<{ 4 * LANES }>().0;
    each_row!(Q, |q| { scale.store_four(values[q], &mut kept[q]) });
    scale.row
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_four(from: &[f32; 4 * LANES]) -> [__m512; 4] {
    [load(from, 0), load(from, 1), load(from, 2), load(from, 3)]
}

/// Keeps the last group of a row, which may be short.
#[inline]
#[target_feature(enable = "avx512f")]
#[allow(clippy::needless_range_loop, reason = "iterators over vectors are not inlined here")]
fn keep_odd_group(from: &Blocks<'_>, row: usize, column: usize, kept: &mut [u8]) -> RowScale {
    let kept = kept.as_chunks_mut::<LANES>().0;
    let mut low = _mm512_set1_ps(f32::INFINITY);
    let mut high = _mm512_set1_ps(f32::NEG_INFINITY);
    for i in 0..kept.len() {
        let value = load::<LANES>(from.lanes(row, column + i * LANES), 0);
        low = _mm512_min_ps(low, value);
        high = _mm512_max_ps(high, value);
    }
    let scale = Scale::of(low, high);
    for i in 0..kept.len() {
        scale.store(load::<LANES>(from.lanes(row, column + i * LANES), 0), &mut kept[i]);
    }
    scale.row
}

/// Scale of a group's conversion to 8 bits.
struct Scale {
    row: RowScale,
    factor: __m512,
    offset: __m512,
}

/// Permutation that restores the order of bytes that were packed within each quarter of a register: the four bytes of
/// vector v in quarter q are number 4 q + v there.
const IN_ORDER: [i32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

impl Scale {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn of(low: __m512, high: __m512) -> Self {
        let low = _mm512_reduce_min_ps(low);
        let high = _mm512_reduce_max_ps(high);
        let row = RowScale::of_range(low, high, LEVELS);
        let factor = 1.0 / row.scale;
        Self { row, factor: _mm512_set1_ps(factor), offset: _mm512_set1_ps(-low * factor) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn levels(&self, value: __m512) -> __m512i {
        _mm512_cvtps_epi32(_mm512_fmadd_ps(value, self.factor, self.offset))
    }

    /// Stores one vector. Values out of range, which only non-finite ones can be, are clamped to the range.
    #[inline]
    #[target_feature(enable = "avx512f")]
    #[allow(unsafe_code, reason = "stores have no safe form")]
    fn store(&self, value: __m512, to: &mut [u8; LANES]) {
        let levels = _mm512_max_epi32(self.levels(value), _mm512_setzero_si512());
        // SAFETY: the array has the vector's 16 bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtusepi32_epi8(levels)) }
    }

    /// Stores four vectors at once: packing two into one takes half as long as narrowing one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[allow(unsafe_code, reason = "loads and stores have no safe form")]
    fn store_four(&self, values: [__m512; 4], to: &mut [u8; 4 * LANES]) {
        let [a, b, c, d] = values;
        let first = _mm512_packs_epi32(self.levels(a), self.levels(b));
        let second = _mm512_packs_epi32(self.levels(c), self.levels(d));
        let bytes = _mm512_packus_epi16(first, second);
        // SAFETY: the arrays have the vectors' 64 bytes.
        unsafe {
            let order = _mm512_loadu_si512(IN_ORDER.as_ptr().cast());
            let bytes = _mm512_permutexvar_epi32(order, bytes);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), bytes);
        }
    }
}
