//! Self-attention of one head within one text. Nothing is padded to another text's length, since every token attends
//! only to its own text. Vector types come from `pulp`.

#[cfg(target_arch = "x86_64")]
mod bf16;

use pulp::{Arch, Simd, WithSimd};

use super::elementwise::exponentials;
use super::isa::Isa;
use super::kernel::{PanelRow, blocks, for_rows};
use super::shared::Shared;
use super::transpose::{LANES, transpose};
use crate::device::NumberFormat;

/// Query rows that are computed at a time: twice as many sums fit into AVX2's 16 registers, and their scores stay in
/// the first-level cache.
const ROWS: usize = 6;

/// Mask that is added to scores, from its middle on or from a given number of places before it. It rules out the
/// columns beyond a text's last token.
const BEYOND: [f32; 2 * LANES] = {
    let mut beyond = [0.0; 2 * LANES];
    let mut place = LANES;
    while place < 2 * LANES {
        beyond[place] = f32::NEG_INFINITY;
        place += 1;
    }
    beyond
};

/// Columns of one head in a text's queries, keys or values: a run within panel rows.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    /// Rows of the panel that contains the head, one per token.
    pub(super) rows: &'a [PanelRow],
    /// First column of the head in the panel.
    pub(super) column: usize,
}

impl<'a> HeadRows<'a> {
    /// Returns `width` columns of row `token`.
    #[inline(always)]
    pub(super) fn row(&self, token: usize, width: usize) -> &'a [f32] {
        &self.rows[token][self.column..self.column + width]
    }
}

/// One head of one text: some of its queries, all of its keys and values.
pub(super) struct Head<'a> {
    /// Queries, scaled by one over the root of the head's width.
    pub(super) query: HeadRows<'a>,
    pub(super) key: HeadRows<'a>,
    pub(super) value: HeadRows<'a>,
    /// Width in columns, a multiple of 16 that divides a panel.
    pub(super) width: usize,
}

/// Memory that is reused from head to head.
#[derive(Default)]
pub(super) struct Scratch {
    /// Transposed keys.
    keys: Shared<f32>,
    /// `ROWS` rows with as many columns.
    scores: Shared<f32>,
    #[cfg(target_arch = "x86_64")]
    bf16: bf16::Scratch,
}

/// Implementation of attention.
#[derive(Clone, Copy)]
pub(super) enum Attention {
    F32(Arch),
    #[cfg(target_arch = "x86_64")]
    Bf16(bf16::Bf16Avx512),
}

impl Attention {
    /// Returns the fastest implementation that is no less precise than values kept as `format`.
    pub(super) fn new(isa: Isa, format: NumberFormat) -> Self {
        #[cfg(target_arch = "x86_64")]
        if format != NumberFormat::F32
            && let Some(bf16) = bf16::Bf16Avx512::new(isa)
        {
            return Self::Bf16(bf16);
        }
        let _ = format;
        Self::F32(isa.arch)
    }

    /// Fills `head.width` columns, from `column` on, of a row for each query.
    pub(super) fn attend(
        self,
        head: Head<'_>,
        scratch: &mut Scratch,
        context: &mut [PanelRow],
        column: usize,
    ) {
        match self {
            Self::F32(arch) => head.attend(arch, scratch, context, column),
            #[cfg(target_arch = "x86_64")]
            Self::Bf16(bf16) => bf16.attend(&head, &mut scratch.bf16, context, column),
        }
    }
}

impl Head<'_> {
    fn attend(self, arch: Arch, scratch: &mut Scratch, context: &mut [PanelRow], column: usize) {
        let columns = self.key.rows.len().next_multiple_of(LANES);
        let keys = scratch.keys.own(self.width * columns, 0.0);
        let scores = scratch.scores.own(ROWS * columns, 0.0);
        transpose(arch, self.key, self.width, keys);
        arch.dispatch(Attend { head: self, columns, keys, scores, context, column });
    }
}

/// Head, with the destination of its results.
struct Attend<'a> {
    head: Head<'a>,
    /// Number of the keys' tokens, padded.
    columns: usize,
    keys: &'a [f32],
    scores: &'a mut [f32],
    context: &'a mut [PanelRow],
    /// First column of `context` that is written.
    column: usize,
}

impl WithSimd for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (first, len) in blocks(self.head.query.rows.len(), ROWS) {
            for_rows!(len, [1, 2, 3, 4, 5], 6, self.block::<S, N>(simd, first));
        }
    }
}

impl Attend<'_> {
    /// Computes the contexts of `N` tokens from `first` on.
    #[inline(always)]
    fn block<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let maxima = self.scores::<S, N>(simd, first);
        let mut scales = [simd.splat_f32s(0.0); N];
        let rows = self.scores.chunks_exact_mut(self.columns);
        for ((row, scale), max) in rows.zip(&mut scales).zip(maxima) {
            let max = simd.splat_f32s(simd.reduce_max_f32s(max));
            *scale = simd.splat_f32s(1.0 / exponentials(simd, row, max));
        }
        let mut column = 0;
        while column + 2 * S::F32_LANES <= self.head.width {
            self.contexts::<S, N, 2>(simd, (first, column), &scales);
            column += 2 * S::F32_LANES;
        }
        while column < self.head.width {
            self.contexts::<S, N, 1>(simd, (first, column), &scales);
            column += S::F32_LANES;
        }
    }

    /// Computes the scores of `N` tokens, and the largest of each.
    #[inline(always)]
    fn scores<S: Simd, const N: usize>(&mut self, simd: S, first: usize) -> [S::f32s; N] {
        let mut maxima = [simd.splat_f32s(f32::NEG_INFINITY); N];
        let mut column = 0;
        while column + 2 * S::F32_LANES <= self.columns {
            self.tile::<S, N, 2>(simd, (first, column), &mut maxima);
            column += 2 * S::F32_LANES;
        }
        while column < self.columns {
            self.tile::<S, N, 1>(simd, (first, column), &mut maxima);
            column += S::F32_LANES;
        }
        maxima
    }

    /// Computes `N` rows by `V` vectors of scores, kept in registers until done.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "of every row, the vector is another's")]
    fn tile<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        (first, column): (usize, usize),
        maxima: &mut [S::f32s; N],
    ) {
        let tokens = self.head.key.rows.len();
        let queries: [&[f32]; N] =
            std::array::from_fn(|r| self.head.query.row(first + r, self.head.width));
        let mut sums = [[simd.splat_f32s(0.0); V]; N];
        for k in 0..self.head.width {
            let keys = &self.keys[k * self.columns + column..][..V * S::F32_LANES];
            let (keys, _) = S::as_simd_f32s(keys);
            for (query, sums) in queries.iter().zip(&mut sums) {
                let x = simd.splat_f32s(query[k]);
                for (sum, &key) in sums.iter_mut().zip(keys) {
                    *sum = simd.mul_add_f32s(x, key, *sum);
                }
            }
        }
        for v in 0..V {
            let column = column + v * S::F32_LANES;
            let there = tokens.saturating_sub(column).min(LANES);
            let (beyond, _) = S::as_simd_f32s(&BEYOND[LANES - there..][..S::F32_LANES]);
            for r in 0..N {
                let score = simd.add_f32s(sums[r][v], beyond[0]);
                maxima[r] = simd.max_f32s(maxima[r], score);
                let to = &mut self.scores[r * self.columns + column..][..S::F32_LANES];
                S::as_mut_simd_f32s(to).0[0] = score;
            }
        }
    }

    /// Computes `V` vectors of `N` tokens' contexts: the values times the scores, times `scales`.
    #[inline(always)]
    fn contexts<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        (first, column): (usize, usize),
        scales: &[S::f32s; N],
    ) {
        let tokens = self.head.value.rows.len();
        let value = self.head.value;
        let scores: [&[f32]; N] =
            std::array::from_fn(|r| &self.scores[r * self.columns..][..tokens]);
        let mut sums = [[simd.splat_f32s(0.0); V]; N];
        for token in 0..tokens {
            let values = &value.rows[token][value.column + column..][..V * S::F32_LANES];
            let (values, _) = S::as_simd_f32s(values);
            for (scores, sums) in scores.iter().zip(&mut sums) {
                let x = simd.splat_f32s(scores[token]);
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum = simd.mul_add_f32s(x, value, *sum);
                }
            }
        }
        for r in 0..N {
            let out = &mut self.context[first + r][self.column + column..];
            let (out, _) = S::as_mut_simd_f32s(&mut out[..V * S::F32_LANES]);
            for (out, &sum) in out.iter_mut().zip(&sums[r]) {
                *out = simd.mul_f32s(sum, scales[r]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::bf16::{from_f32, to_f32};
    use crate::cpu::kernel::PANEL;

    /// Returns rows that differ from each other, within a range.
    fn rows(count: usize, seed: u64, range: f32) -> Vec<PanelRow> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * range
        };
        (0..count).map(|_| std::array::from_fn(|_| next())).collect()
    }

    /// Returns `softmax(q k^T) v` of one query; queries and keys are rounded first.
    fn exact(head: &Head<'_>, query: usize, round: fn(f32) -> f32) -> Vec<f64> {
        let dot = |key: usize| -> f64 {
            let query = head.query.row(query, head.width);
            let key = head.key.row(key, head.width);
            query.iter().zip(key).map(|(x, y)| f64::from(round(*x)) * f64::from(round(*y))).sum()
        };
        let scores: Vec<f64> = (0..head.key.rows.len()).map(dot).collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let numerators: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = numerators.iter().sum();
        let value = |token: usize, column| f64::from(head.value.row(token, head.width)[column]);
        let sums = |column| numerators.iter().enumerate().map(move |(t, n)| n * value(t, column));
        (0..head.width).map(|column| sums(column).sum::<f64>() / sum).collect()
    }

    /// Rounding of a number format, with the largest error of its contexts for values up to 1.
    type Rounding = (fn(f32) -> f32, f64);

    /// Checks the attention of the last `asked` of `tokens` tokens, for heads of every width and place. `range` is the
    /// range of queries: a larger one concentrates attention on fewer tokens.
    fn check(
        attention: Attention,
        (round, tolerance): Rounding,
        tokens: usize,
        asked: usize,
        range: f32,
    ) {
        let [queries, keys, values] =
            [(1, range), (2, 1.0), (3, 1.0)].map(|(seed, range)| rows(tokens, seed, range));
        let mut scratch = Scratch::default();
        for width in [16, 32, 64] {
            for column in (0..PANEL).step_by(width) {
                let part = |rows| HeadRows { rows, column };
                let query = part(&queries[tokens - asked..]);
                let head = || Head { query, key: part(&keys), value: part(&values), width };
                let mut context = vec![[f32::NAN; PANEL]; asked];
                attention.attend(head(), &mut scratch, &mut context, column);
                for (index, context) in context.iter().enumerate() {
                    let (before, rest) = context.split_at(column);
                    let (ours, after) = rest.split_at(width);
                    assert!(before.iter().chain(after).all(|x| x.is_nan()), "others' columns");
                    for (got, want) in ours.iter().zip(exact(&head(), index, round)) {
                        let off = (f64::from(*got) - want).abs();
                        assert!(off < tolerance, "{tokens} {asked} {width}: {got}, not {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_head_is_attended_to_as_the_definition_says() {
        let isa = Isa::detect().expect("no limit is set");
        let exact: Rounding = (|x| x, 1e-4);
        let halves: Rounding = (|x| to_f32(from_f32(x)), 0.01);
        let bf16 = Attention::new(isa, NumberFormat::Bf16);
        let rounded = if matches!(bf16, Attention::F32(_)) { exact } else { halves };
        for (attention, rounding) in [
            (Attention::F32(isa.arch), exact),
            (Attention::F32(Arch::Scalar), exact),
            (Attention::new(isa, NumberFormat::F32), exact),
            (bf16, rounded),
        ] {
            for tokens in [1, 2, 15, 16, 17, 31, 33, 50, 202] {
                check(attention, rounding, tokens, tokens, 1.0);
                check(attention, rounding, tokens, tokens.div_ceil(3), 100.0);
            }
        }
    }
}
