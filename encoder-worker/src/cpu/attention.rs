//! Self-attention of one head within one text. Nothing is padded to another text's length and nothing
//! is masked, since every token attends to its own text only.

use pulp::{Arch, Simd, WithSimd};

use super::elementwise::exponentials;
use super::kernel::{PANEL, PanelRow};
use super::product::{Product, Strided};

/// Columns of scores are padded to a multiple of this: the widest vector.
const LANES: usize = 16;

/// Query rows that are worked on at a time: their scores stay in the first-level cache.
const BLOCK: usize = 24;

/// One head's columns of a text's queries, keys or values: a run within panel rows.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    /// The rows of the panel that has the head, one per token.
    pub(super) rows: &'a [PanelRow],
    /// The head's first column in it.
    pub(super) column: usize,
}

impl<'a> HeadRows<'a> {
    /// From the head's first column in the row `from` on.
    fn starting_at(&self, from: usize) -> Strided<'a> {
        let values = &self.rows[from..].as_flattened()[self.column..];
        Strided { values, stride: PANEL }
    }
}

/// One head of one text.
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
    /// The keys, transposed: `width` rows of as many columns as there are tokens, padded.
    keys: Vec<f32>,
    /// `BLOCK` rows of as many columns.
    scores: Vec<f32>,
}

impl Head<'_> {
    /// `context` gets one row of `width` per token.
    pub(super) fn attend(&self, arch: Arch, scratch: &mut Scratch, context: &mut [f32]) {
        let tokens = self.query.rows.len();
        let columns = tokens.next_multiple_of(LANES);
        let Scratch { keys, scores } = scratch;
        keys.resize(self.width * columns, 0.0);
        self.transpose_keys(keys, columns);
        for (block, context) in context.chunks_mut(BLOCK * self.width).enumerate() {
            let rows = context.len() / self.width;
            scores.resize(rows * columns, 0.0);
            arch.dispatch(Product {
                a: self.query.starting_at(block * BLOCK),
                b: Strided { values: keys, stride: columns },
                out: scores,
                inner: self.width,
                columns,
            });
            let sums = arch.dispatch(SoftmaxNumerators { scores, columns, tokens });
            arch.dispatch(Product {
                a: Strided { values: scores, stride: columns },
                b: self.value.starting_at(0),
                out: context,
                inner: tokens,
                columns: self.width,
            });
            for (row, sum) in context.chunks_exact_mut(self.width).zip(sums) {
                let scale = 1.0 / sum;
                row.iter_mut().for_each(|x| *x *= scale);
            }
        }
    }

    /// What is beyond the last token stays from earlier texts: its scores are replaced.
    fn transpose_keys(&self, keys: &mut [f32], columns: usize) {
        for (token, row) in self.key.rows.iter().enumerate() {
            let from = &row[self.key.column..self.key.column + self.width];
            for (key, column) in from.iter().zip(keys.chunks_exact_mut(columns)) {
                column[token] = *key;
            }
        }
    }
}

/// Exponentials of the scores, and each row's sum.
struct SoftmaxNumerators<'a> {
    scores: &'a mut [f32],
    columns: usize,
    tokens: usize,
}

impl WithSimd for SoftmaxNumerators<'_> {
    type Output = [f32; BLOCK];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f32; BLOCK] {
        let mut sums = [1.0; BLOCK];
        for (row, sum) in self.scores.chunks_exact_mut(self.columns).zip(&mut sums) {
            row[self.tokens..].fill(f32::NEG_INFINITY);
            *sum = exponentials(simd, row);
        }
        sums
    }
}
