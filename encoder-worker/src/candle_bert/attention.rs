//! Self-attention over packed texts as one candle operation: every token attends to its own text
//! only, so nothing is padded and nothing is masked.

use std::ops::Range;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape};
use pulp::Arch;
use rayon::prelude::*;

use super::kernels::softmax;
use super::product::{Product, TILE_COLUMNS};
use super::storage::{floats, width_of};

/// Rows of one task: a long text is split so that every thread has something to do.
const ROWS_PER_TASK: usize = 64;

/// `(qkv [tokens, 3 * hidden], bias [3 * hidden]) -> context [tokens, hidden]`. The queries' weights
/// and bias are expected to be scaled already.
pub(super) struct Attention<'a> {
    pub(super) arch: Arch,
    pub(super) heads: usize,
    /// Where each text's tokens begin, and at last where they end.
    pub(super) bounds: &'a [usize],
}

impl CustomOp2 for Attention<'_> {
    fn name(&self) -> &'static str {
        "packed-attention"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        qkv_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let hidden = width_of(qkv_layout)? / 3;
        let qkv = floats(qkv, qkv_layout)?;
        let bias = floats(bias, bias_layout)?;
        let mut context = vec![0.0; qkv.len() / 3];
        self.tasks(&mut context, hidden).into_par_iter().for_each(|task| {
            let text = TextView {
                qkv: &qkv[task.text.start * 3 * hidden..task.text.end * 3 * hidden],
                bias,
                hidden,
                heads: self.heads,
            };
            text.attend(self.arch, task.rows, task.out);
        });
        let shape = Shape::from((context.len() / hidden, hidden));
        Ok((CpuStorage::F32(context), shape))
    }
}

/// Some query rows of one text, and where their result goes.
struct Task<'a> {
    text: Range<usize>,
    rows: Range<usize>,
    out: &'a mut [f32],
}

impl Attention<'_> {
    fn tasks<'c>(&self, mut context: &'c mut [f32], hidden: usize) -> Vec<Task<'c>> {
        let mut tasks = Vec::with_capacity(self.bounds.len());
        for text in self.bounds.windows(2).map(|pair| pair[0]..pair[1]) {
            for first in (0..text.len()).step_by(ROWS_PER_TASK) {
                let rows = first..(first + ROWS_PER_TASK).min(text.len());
                let (out, rest) = context.split_at_mut(rows.len() * hidden);
                context = rest;
                tasks.push(Task { text: text.clone(), rows, out });
            }
        }
        tasks
    }
}

/// One text's queries, keys and values.
struct TextView<'a> {
    qkv: &'a [f32],
    bias: &'a [f32],
    hidden: usize,
    heads: usize,
}

/// Which third of a `qkv` row.
#[derive(Clone, Copy)]
enum Part {
    Query,
    Key,
    Value,
}

impl TextView<'_> {
    fn attend(&self, arch: Arch, rows: Range<usize>, out: &mut [f32]) {
        let width = self.hidden / self.heads;
        let tokens = self.qkv.len() / (3 * self.hidden);
        let mut scratch = Scratch::new(rows.len(), tokens, width);
        for head in 0..self.heads {
            arch.dispatch(|| {
                self.gather(head, Part::Query, rows.clone(), &mut scratch.query);
                self.gather_transposed(head, &mut scratch.keys, scratch.padded_tokens);
                self.gather(head, Part::Value, 0..tokens, &mut scratch.values);
            });
            arch.dispatch(scratch.scores());
            arch.dispatch(|| {
                for row in scratch.scores.chunks_exact_mut(scratch.padded_tokens) {
                    row[tokens..].fill(f32::NEG_INFINITY);
                    softmax(row);
                }
            });
            arch.dispatch(scratch.weighted_values());
            let head_rows = scratch.context.chunks_exact(scratch.query.stride);
            for (row, context) in out.chunks_exact_mut(self.hidden).zip(head_rows) {
                row[head * width..(head + 1) * width].copy_from_slice(&context[..width]);
            }
        }
    }

    /// One head's part of one token's row.
    #[inline(always)]
    fn slice(&self, token: usize, head: usize, part: Part) -> (&[f32], &[f32]) {
        let width = self.hidden / self.heads;
        let start = part as usize * self.hidden + head * width;
        let row = &self.qkv[token * 3 * self.hidden..];
        (&row[start..start + width], &self.bias[start..start + width])
    }

    #[inline(always)]
    fn gather(&self, head: usize, part: Part, tokens: Range<usize>, into: &mut Matrix) {
        for (row, token) in into.values.chunks_exact_mut(into.stride).zip(tokens) {
            let (from, bias) = self.slice(token, head, part);
            for ((to, from), bias) in row.iter_mut().zip(from).zip(bias) {
                *to = from + bias;
            }
        }
    }

    #[inline(always)]
    fn gather_transposed(&self, head: usize, keys: &mut [f32], stride: usize) {
        let tokens = self.qkv.len() / (3 * self.hidden);
        for token in 0..tokens {
            let (from, bias) = self.slice(token, head, Part::Key);
            for (i, (from, bias)) in from.iter().zip(bias).enumerate() {
                keys[i * stride + token] = from + bias;
            }
        }
    }
}

/// Rows a fixed stride apart.
struct Matrix {
    values: Vec<f32>,
    stride: usize,
}

/// What one task needs besides its input; reused from head to head.
struct Scratch {
    rows: usize,
    tokens: usize,
    width: usize,
    padded_tokens: usize,
    query: Matrix,
    /// Transposed: `width` rows of `padded_tokens`.
    keys: Vec<f32>,
    values: Matrix,
    scores: Vec<f32>,
    context: Vec<f32>,
}

impl Scratch {
    fn new(rows: usize, tokens: usize, width: usize) -> Self {
        let padded_tokens = tokens.next_multiple_of(TILE_COLUMNS);
        let stride = width.next_multiple_of(TILE_COLUMNS);
        let matrix = |rows: usize| Matrix { values: vec![0.0; rows * stride], stride };
        Self {
            rows,
            tokens,
            width,
            padded_tokens,
            query: matrix(rows),
            keys: vec![0.0; width * padded_tokens],
            values: matrix(tokens),
            scores: vec![0.0; rows * padded_tokens],
            context: vec![0.0; rows * stride],
        }
    }

    fn scores(&mut self) -> Product<'_> {
        Product {
            a: &self.query.values,
            a_stride: self.query.stride,
            b: &self.keys,
            out: &mut self.scores,
            rows: self.rows,
            inner: self.width,
            columns: self.padded_tokens,
        }
    }

    fn weighted_values(&mut self) -> Product<'_> {
        Product {
            a: &self.scores,
            a_stride: self.padded_tokens,
            b: &self.values.values,
            out: &mut self.context,
            rows: self.rows,
            inner: self.tokens,
            columns: self.values.stride,
        }
    }
}
