//! Self-attention of one head with AVX-512 BF16: `vdpbf16ps` does twice the work of a multiply-add. Queries, keys,
//! values and the softmax's numerators are rounded to bf16, two of them in each 32 bits. Sums are f32.

use std::arch::x86_64::*;

use super::Head;
use crate::cpu::avx512::{each_row, floats, put, spread};
use crate::cpu::bf16::avx512::of_bits;
use crate::cpu::isa::Isa;
use crate::cpu::kernel::{PanelRow, blocks, for_rows};
use crate::cpu::shared::Shared;
use crate::cpu::transpose::{LANES, avx512::transposed};

/// Most queries that are computed at a time.
const ROWS: usize = 8;

/// Score of columns beyond the last token, far below all others.
const BEYOND: f32 = -1e30;

/// Kernel that exists only if the CPU has the instructions.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Bf16Avx512(());

/// Memory that is reused from head to head.
#[derive(Default)]
pub(super) struct Scratch {
    /// Pairs of a key's values: a row for each pair, a column for each token.
    keys: Shared<i32>,
    /// Pairs of tokens' values: a row for each pair, a column for each of the head's columns.
    values: Shared<i32>,
    /// Row of pairs for each query of a block: first its values, then its numerators.
    rows: Shared<i32>,
    /// Row of scores for each query of a block.
    scores: Shared<f32>,
}

impl Bf16Avx512 {
    pub(super) fn new(isa: Isa) -> Option<Self> {
        isa.avx512_bf16.then_some(Self(()))
    }

    /// Works like [`Attention::attend`](super::Attention::attend).
    #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
    pub(super) fn attend(
        self,
        head: &Head<'_>,
        scratch: &mut Scratch,
        context: &mut [PanelRow],
        column: usize,
    ) {
        // SAFETY: `Isa` found these features, or there would be no `Self`.
        unsafe { attend(head, scratch, context, column) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn attend(head: &Head<'_>, scratch: &mut Scratch, context: &mut [PanelRow], column: usize) {
    let width = head.width;
    let tokens = head.key.rows.len();
    let columns = tokens.next_multiple_of(LANES);
    let keys = scratch.keys.own(width.next_multiple_of(2 * LANES) / 2 * columns, 0);
    pair_keys(head, keys, columns);
    let values = scratch.values.own(tokens.div_ceil(2) * width, 0);
    pair_values(head, values);
    let row = columns.max(width).next_multiple_of(2 * LANES) / 2;
    let rows = scratch.rows.own(ROWS * row, 0);
    let scores = scratch.scores.own(ROWS * columns, 0.0);
    let mut block = Block { width, tokens, columns, keys, values, rows, row, scores };
    for (first, len) in blocks(head.query.rows.len(), ROWS) {
        for (query, to) in (first..first + len).zip(block.rows.chunks_exact_mut(row)) {
            pair_row(head.query.row(query, width), to);
        }
        let context = &mut context[first..first + len];
        for_rows!(len, [1, 2, 3, 4, 5, 6, 7], 8, block.attend::<N>(context, column));
    }
}

/// Pairs each key's values and transposes the pairs.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pair_keys(head: &Head<'_>, to: &mut [i32], columns: usize) {
    for token in (0..columns).step_by(LANES) {
        for column in (0..head.width).step_by(2 * LANES) {
            let mut block = [_mm512_setzero_ps(); LANES];
            for (row, token) in block.iter_mut().zip(token..head.key.rows.len()) {
                *row = _mm512_castsi512_ps(paired(head.key.row(token, head.width), column));
            }
            for (i, row) in transposed(block).into_iter().enumerate() {
                put_pairs(&mut to[(column / 2 + i) * columns + token..], _mm512_castps_si512(row));
            }
        }
    }
}

/// Permutation that alternates the sixteen values of the lower half with those of the upper half.
const ALTERNATE: [i16; 2 * LANES] = {
    let mut order = [0; 2 * LANES];
    let mut place = 0;
    while place < order.len() {
        order[place] = (place / 2 + place % 2 * LANES) as i16;
        place += 1;
    }
    order
};

/// Pairs each token's values with the next token's, or with zeros.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn pair_values(head: &Head<'_>, to: &mut [i32]) {
    // SAFETY: the array is as long as the vector.
    let order = unsafe { _mm512_loadu_si512(ALTERNATE.as_ptr().cast()) };
    let tokens = head.value.rows.len();
    for (pair, to) in to.chunks_exact_mut(head.width).enumerate() {
        let even = head.value.row(2 * pair, head.width);
        let odd = (2 * pair + 1 < tokens).then(|| head.value.row(2 * pair + 1, head.width));
        for column in (0..head.width).step_by(LANES) {
            let odd = match odd {
                Some(odd) => floats(&odd[column..]),
                None => _mm512_setzero_ps(),
            };
            let both = bits(_mm512_cvtne2ps_pbh(odd, floats(&even[column..])));
            put_pairs(&mut to[column..], _mm512_permutexvar_epi16(order, both));
        }
    }
}

/// Pairs neighbouring values of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn pair_row(row: &[f32], to: &mut [i32]) {
    for column in (0..row.len()).step_by(2 * LANES) {
        put_pairs(&mut to[column / 2..], paired(row, column));
    }
}

/// Loads 32 values from `column` on; the second half is zeros if the row ends after the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn paired(row: &[f32], column: usize) -> __m512i {
    let low = floats(&row[column..]);
    let high = match row.get(column + LANES..) {
        Some(rest @ [_, ..]) => floats(rest),
        _ => _mm512_setzero_ps(),
    };
    bits(_mm512_cvtne2ps_pbh(high, low))
}

/// Head in pairs, with the memory for a block of its queries.
struct Block<'a> {
    /// Columns of the head.
    width: usize,
    tokens: usize,
    /// Number of tokens, padded.
    columns: usize,
    keys: &'a [i32],
    values: &'a [i32],
    rows: &'a mut [i32],
    /// Distance between two rows in pairs.
    row: usize,
    scores: &'a mut [f32],
}

impl Block<'_> {
    /// Computes the contexts of `N` queries.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    fn attend<const N: usize>(&mut self, context: &mut [PanelRow], first: usize) {
        let mut maxima = [_mm512_set1_ps(BEYOND); N];
        let mut column = 0;
        while column + 2 * LANES <= self.columns {
            self.scores::<N, 2>(column, &mut maxima);
            column += 2 * LANES;
        }
        if column < self.columns {
            self.scores::<N, 1>(column, &mut maxima);
        }
        let mut scales = [0.0; N];
        let rows = self.scores.chunks_exact(self.columns).zip(self.rows.chunks_exact_mut(self.row));
        for ((scores, pairs), (scale, max)) in rows.zip(scales.iter_mut().zip(maxima)) {
            *scale = 1.0 / numerators(scores, _mm512_reduce_max_ps(max), pairs);
        }
        let mut column = 0;
        while column + 2 * LANES <= self.width {
            self.contexts::<N, 2>(column, &scales, (context, first));
            column += 2 * LANES;
        }
        if column < self.width {
            self.contexts::<N, 1>(column, &scales, (context, first));
        }
    }

    /// Computes `V` vectors of `N` queries' scores.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
    #[allow(clippy::needless_range_loop, reason = "of every row, the vector is another's")]
    fn scores<const N: usize, const V: usize>(&mut self, column: usize, maxima: &mut [__m512; N]) {
        let rows = &self.rows[..N * self.row];
        let row = self.row;
        let pairs = self.width / 2;
        assert!(pairs <= row);
        let mut sums = [[_mm512_setzero_ps(); V]; N];
        for (pair, keys) in self.keys.chunks_exact(self.columns).take(pairs).enumerate() {
            let keys = [as_pairs(&keys[column..]), as_pairs(&keys[column + (V - 1) * LANES..])];
            each_row!(N, |r| {
                // SAFETY: there are `N` rows, longer than `pair`.
                let query = of_bits(unsafe { spread(rows, r * row + pair) });
                sums[r][0] = _mm512_dpbf16_ps(sums[r][0], query, keys[0]);
                if V == 2 {
                    sums[r][V - 1] = _mm512_dpbf16_ps(sums[r][V - 1], query, keys[1]);
                }
            });
        }
        let beyond = _mm512_set1_ps(BEYOND);
        for v in 0..V {
            let column = column + v * LANES;
            let there = (1_u32 << (self.tokens - column).min(LANES)) - 1;
            each_row!(N, |r| {
                let score = _mm512_mask_mov_ps(beyond, there as u16, sums[r][v]);
                maxima[r] = _mm512_max_ps(maxima[r], score);
                put(&mut self.scores[r * self.columns + column..], score);
            });
        }
    }

    /// Computes `V` vectors of `N` queries' contexts: the values times the numerators, times `scales`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[allow(unsafe_code, reason = "a check of bounds in the innermost loop spills the sums")]
    fn contexts<const N: usize, const V: usize>(
        &self,
        column: usize,
        scales: &[f32; N],
        (context, first): (&mut [PanelRow], usize),
    ) {
        let rows = &self.rows[..N * self.row];
        let row = self.row;
        let pairs = self.tokens.div_ceil(2);
        assert!(pairs <= row);
        let mut sums = [[_mm512_setzero_ps(); V]; N];
        for (pair, values) in self.values.chunks_exact(self.width).take(pairs).enumerate() {
            let values = &values[column..column + V * LANES];
            let values = [as_pairs(values), as_pairs(&values[(V - 1) * LANES..])];
            each_row!(N, |r| {
                // SAFETY: there are `N` rows, longer than `pair`.
                let numerators = of_bits(unsafe { spread(rows, r * row + pair) });
                sums[r][0] = _mm512_dpbf16_ps(sums[r][0], numerators, values[0]);
                if V == 2 {
                    sums[r][V - 1] = _mm512_dpbf16_ps(sums[r][V - 1], numerators, values[1]);
                }
            });
        }
        for v in 0..V {
            each_row!(N, |r| {
                let scaled = _mm512_mul_ps(sums[r][v], _mm512_set1_ps(scales[r]));
                put(&mut context[r][first + column + v * LANES..], scaled);
            });
        }
    }
}

/// Computes `e^(score - max)` of each score, in pairs; returns their sum.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bf16")]
fn numerators(scores: &[f32], max: f32, to: &mut [i32]) -> f32 {
    let mut sum = _mm512_setzero_ps();
    let mut to = to.chunks_exact_mut(LANES);
    let max = _mm512_set1_ps(max * std::f32::consts::LOG2_E);
    for scores in scores.chunks(2 * LANES) {
        let low = power(floats(scores), max);
        let high = match scores.get(LANES..) {
            Some(scores @ [_, ..]) => power(floats(scores), max),
            _ => _mm512_setzero_ps(),
        };
        sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
        if let Some(to) = to.next() {
            put_pairs(to, bits(_mm512_cvtne2ps_pbh(high, low)));
        }
    }
    _mm512_reduce_add_ps(sum)
}

/// Minimax fit of `2^x` for 0 <= x < 1, with an error within 8e-5, which is below bf16's precision.
const EXP2_SERIES: [f32; 4] = [0.999_925_3, 0.695_833_1, 0.226_067_8, 0.078_024_25];

/// Returns `2^(score log2(e) - max)`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn power(score: __m512, max: __m512) -> __m512 {
    const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    let x = _mm512_fmsub_ps(score, _mm512_set1_ps(std::f32::consts::LOG2_E), max);
    let part = _mm512_reduce_ps::<DOWN>(x);
    let mut series = _mm512_set1_ps(EXP2_SERIES[3]);
    for c in EXP2_SERIES[..3].iter().rev() {
        series = _mm512_fmadd_ps(series, part, _mm512_set1_ps(*c));
    }
    _mm512_scalef_ps(series, x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "the vector type has no other way out")]
fn bits(pairs: __m512bh) -> __m512i {
    // SAFETY: both are 64 bytes of plain bits.
    unsafe { std::mem::transmute(pairs) }
}

/// Loads sixteen pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
#[allow(unsafe_code, reason = "loads have no safe form")]
fn as_pairs(from: &[i32]) -> __m512bh {
    let from = &from[..LANES];
    // SAFETY: the slice holds 16 pairs.
    of_bits(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code, reason = "stores have no safe form")]
fn put_pairs(to: &mut [i32], pairs: __m512i) {
    let to = &mut to[..LANES];
    // SAFETY: the slice has room for 16 pairs.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), pairs) }
}
