//! Shared parts of the products with AVX-512. A tile is two vectors wide: half of a panel. While half of a panel is
//! multiplied, the same half of the next panel is prefetched.

use std::arch::x86_64::*;

use super::kernel::{PANEL, Panel, PanelRow};

/// Most rows of a tile: 28 sums, 2 weights and 1 activation of the 32 registers.
pub(super) const ROWS: usize = 14;

/// Repeats `$body` for each row below `$n`, unrolled, because a loop over rows would keep their sums in memory.
macro_rules! each_row {
    ($n:ident, |$row:ident| $body:block) => {
        each_row!($n, |$row| $body, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    };
    ($n:ident, |$row:ident| $body:block, [$($index:literal),*]) => {
        $(if $index < $n {
            let $row = $index;
            $body
        })*
    };
}
pub(super) use each_row;

/// Runs `$tile` for blocks of rows. Only the first block prefetches the next panel; the others find their weights in
/// the cache.
macro_rules! for_tiles {
    ($panel:ident, $out:ident, |$first:ident, $some:ident| $tile:expr) => {
        for (index, ($first, len)) in blocks($out.len(), ROWS).enumerate() {
            let $some = &mut $out[$first..$first + len];
            let $panel = if index == 0 { $panel } else { Panel { ahead: &[], ..$panel } };
            for_rows!(len, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], 14, $tile)
        }
    };
}
pub(super) use for_tiles;

/// Prefetches half of step `index` of the next panel.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fetch<S, const HALF: usize>(panel: &Panel<'_, S>, index: usize) {
    const { assert!(size_of::<S>() == 256) };
    if let Some(step) = panel.ahead.get(index) {
        let step: *const i8 = (&raw const *step).cast();
        _mm_prefetch::<_MM_HINT_T1>(step.wrapping_add(128 * HALF));
        _mm_prefetch::<_MM_HINT_T1>(step.wrapping_add(128 * HALF + 64));
    }
}

/// Loads half of a step's weights.
#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "loads have no safe form")]
pub(super) fn load_half<S, const HALF: usize>(step: &S) -> [__m512i; 2] {
    const { assert!(size_of::<S>() == 256 && align_of::<S>() == 64) };
    let from: *const __m512i = (&raw const *step).cast();
    // SAFETY: a step is four times 64 bytes, aligned to 64. A closure here would not be inlined.
    unsafe { [_mm512_load_si512(from.add(2 * HALF)), _mm512_load_si512(from.add(2 * HALF + 1))] }
}

/// Broadcasts the four bytes of `rows` that begin at value `at` to every lane.
///
/// # Safety
/// `rows` holds four bytes from value `at` on, and its values are numbers, without padding.
#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
pub(super) unsafe fn spread<V>(rows: &[V], at: usize) -> __m512i {
    // SAFETY: the caller guarantees that the bytes exist.
    let value = unsafe { rows.as_ptr().add(at).cast::<i32>().read_unaligned() };
    _mm512_set1_epi32(value)
}

/// Loads vector `vector` of `from`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load<const L: usize>(from: &[f32; L], vector: usize) -> __m512 {
    floats(&from[16 * vector..])
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut PanelRow, vector: usize, value: __m512) {
    const { assert!(PANEL == 64) };
    put(&mut to[16 * vector..], value);
}

/// Loads the first sixteen values of `from`.
#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "loads have no safe form")]
pub(super) fn floats(from: &[f32]) -> __m512 {
    let from = &from[..16];
    // SAFETY: the slice holds 16 floats.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "stores have no safe form")]
pub(super) fn put(to: &mut [f32], values: __m512) {
    let to = &mut to[..16];
    // SAFETY: the slice has room for 16 floats.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), values) }
}
