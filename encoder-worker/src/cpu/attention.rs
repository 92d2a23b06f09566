//! Self-attention of one head within one text. Nothing is padded to another text's length, since every
//! token attends to its own text only. Vector types come from `pulp`.

use pulp::{Arch, Simd, WithSimd};

use super::elementwise::exponentials;
use super::kernel::{PanelRow, blocks, for_rows};
use super::shared::Shared;
use super::transpose::{LANES, transpose};

/// Query rows that are worked on at a time: twice as many sums fit AVX2's 16 registers, and their scores
/// stay in the first-level cache.
const ROWS: usize = 6;

/// Added to scores from its middle on, or from so many places before it: rules out what is beyond a
/// text's last token.
const BEYOND: [f32; 2 * LANES] = {
    let mut beyond = [0.0; 2 * LANES];
    let mut place = LANES;
    while place < 2 * LANES {
        beyond[place] = f32::NEG_INFINITY;
        place += 1;
    }
    beyond
};

/// One head's columns of a text's queries, keys or values: a run within panel rows.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    /// The rows of the panel that has the head, one per token.
    pub(super) rows: &'a [PanelRow],
    /// The head's first column in it.
    pub(super) column: usize,
}

impl<'a> HeadRows<'a> {
    /// `width` columns of row `token`.
    #[inline(always)]
    pub(super) fn row(&self, token: usize, width: usize) -> &'a [f32] {
        &self.rows[token][self.column..self.column + width]
    }
}

/// One head of one text: some of its queries, all of its keys and values.
pub(super) struct Head<'a> {
    /// Scaled by one over the root of the head's width.
    pub(super) query: HeadRows<'a>,
    pub(super) key: HeadRows<'a>,
    pub(super) value: HeadRows<'a>,
    /// A multiple of 16 that divides a panel.
    pub(super) width: usize,
}

/// Memory that is used again from head to head.
#[derive(Default)]
pub(super) struct Scratch {
    /// The keys, transposed.
    keys: Shared<f32>,
    /// `ROWS` rows of as many columns.
    scores: Shared<f32>,
}

impl Head<'_> {
    /// `context` gets one row of `width` per query.
    pub(super) fn attend(self, arch: Arch, scratch: &mut Scratch, context: &mut [f32]) {
        let columns = self.key.rows.len().next_multiple_of(LANES);
        let keys = scratch.keys.own(self.width * columns, 0.0);
        let scores = scratch.scores.own(ROWS * columns, 0.0);
        transpose(arch, self.key, self.width, keys);
        arch.dispatch(Attend { head: self, columns, keys, scores, context });
    }
}

/// A head and where its results go.
struct Attend<'a> {
    head: Head<'a>,
    /// The keys' tokens, padded.
    columns: usize,
    keys: &'a [f32],
    scores: &'a mut [f32],
    context: &'a mut [f32],
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
    /// The contexts of `N` tokens from `first` on.
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

    /// The scores of `N` tokens, and the largest of each.
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

    /// `N` rows by `V` vectors of scores, kept in registers until done.
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

    /// `V` vectors of `N` tokens' contexts: the values by the scores, by `scales`.
    #[inline(always)]
    fn contexts<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        (first, column): (usize, usize),
        scales: &[S::f32s; N],
    ) {
        let (tokens, value) = (self.head.value.rows.len(), self.head.value);
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
            let out = &mut self.context[(first + r) * self.head.width + column..];
            let (out, _) = S::as_mut_simd_f32s(&mut out[..V * S::F32_LANES]);
            for (out, &sum) in out.iter_mut().zip(&sums[r]) {
                *out = simd.mul_f32s(sum, scales[r]);
            }
        }
    }
}
