//! Forward pass from the view of one member of a team: a list of phases. In a phase each part of the rows belongs to
//! one member, which takes it through a whole layer. Of the other members' rows it reads only the keys and values that
//! the previous phase left. With a team of one it is a plain forward pass, and the result is identical to the last bit.

#![allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]

mod layer;

use std::ops::Range;

use pulp::Arch;

use super::attention::{Attention, Scratch};
use super::elementwise::{LayerNorm, Norm, Update};
use super::isa::vectorised;
use super::kept::{Blocks, Kept};
use super::kernel::{Kernel, PANEL, PanelRow};
use super::model::Model;
use super::pool::{Ending, pool};
use super::shared::Shared;
use super::team::Member;
use crate::model_dir::Activation;

/// Rows that are normalised before they are kept; the data in between stays in the first-level cache.
const NORMAL_ROWS: usize = 4;

/// Rows that go through a layer at a time; the data between two products stays in the second-level cache.
const MOST_ROWS: usize = 96;

/// Fewest rows of a part; fewer are not worth reading all weights.
const LEAST_ROWS: usize = 3;

/// Model with the implementation that computes it.
pub(super) struct Network<K: Kernel> {
    pub(super) model: Model<K>,
    pub(super) kernel: K,
    pub(super) arch: Arch,
    pub(super) attention: Attention,
    pub(super) activation: Activation,
    pub(super) ending: Ending,
}

/// Data that the members of a team share in a forward pass; it only grows.
#[derive(Default)]
pub(super) struct Workspace {
    /// Residual stream: `[tokens, stride]`.
    hidden: Shared<f32>,
    /// Queries, keys and values: `[panels, tokens]`. One is written while the other, of the layer before, is read.
    projected: [Shared<PanelRow>; 2],
    /// Embeddings: `[texts, hidden]`.
    pooled: Shared<f32>,
}

impl Workspace {
    /// Makes room for a batch.
    pub(super) fn grow<K: Kernel>(&mut self, network: &Network<K>, texts: usize, tokens: usize) {
        let shape = network.model.shape;
        self.hidden.grow(tokens * shape.stride(), 0.0);
        for projected in &mut self.projected {
            projected.grow(3 * shape.head_panels() * tokens, [0.0; PANEL]);
        }
        self.pooled.grow(texts * shape.hidden, 0.0);
    }

    /// Returns the embedding of text `index`, after a pass.
    pub(super) fn embedding(&mut self, index: usize, width: usize) -> Vec<f32> {
        // SAFETY: nobody else has this workspace.
        unsafe { self.pooled.read(index * width..(index + 1) * width) }.to_vec()
    }
}

/// Returns the number of phases of a pass through this many layers.
pub(super) const fn phases(layers: usize) -> usize {
    2 + layers
}

/// Memory of one member for itself.
pub(super) struct OwnScratch<V> {
    attention: Scratch,
    /// Normalised rows, padded with zeros.
    normal: Shared<f32>,
    /// Results of a product: `[panels, rows]`.
    products: Shared<PanelRow>,
    /// Results of the heads: `[panels, rows]`.
    context: Shared<PanelRow>,
    pub(super) kept_hidden: Kept<V>,
    kept_context: Kept<V>,
    kept_wide: Kept<V>,
}

impl<V> Default for OwnScratch<V> {
    fn default() -> Self {
        Self {
            attention: Scratch::default(),
            normal: Shared::default(),
            products: Shared::default(),
            context: Shared::default(),
            kept_hidden: Kept::default(),
            kept_context: Kept::default(),
            kept_wide: Kept::default(),
        }
    }
}

/// Part of one member in one forward pass.
pub(super) struct Pass<'a, K: Kernel> {
    pub(super) network: &'a Network<K>,
    pub(super) texts: &'a [&'a [u32]],
    /// Start of each text's tokens, followed by the end of the last one.
    pub(super) bounds: &'a [usize],
    pub(super) workspace: &'a Workspace,
    pub(super) member: &'a Member<'a>,
}

impl<K: Kernel> Pass<'_, K> {
    pub(super) fn run(&self, own: &mut OwnScratch<K::Value>) {
        let layers = &self.network.model.layers;
        self.for_rows(|rows| {
            self.embed_tokens(rows.clone(), own);
            self.project(0, rows, own);
        });
        for (index, layer) in layers.iter().enumerate() {
            self.for_rows(|rows| {
                self.attend(index, rows.clone(), own);
                self.add_norm(&layer.attention_norm, rows.clone(), own);
                self.widen(index, rows.clone(), own);
                self.add_norm(&layer.down_norm, rows.clone(), own);
                self.project(index + 1, rows, own);
            });
        }
        self.pool();
    }

    fn tokens(&self) -> usize {
        self.bounds.last().copied().unwrap_or_default()
    }

    /// Runs a phase over all rows, some at a time.
    fn for_rows(&self, mut work: impl FnMut(Range<usize>)) {
        let tokens = self.tokens();
        let parts = (tokens / LEAST_ROWS).clamp(1, self.member.count);
        self.member.phase(tokens, parts, |range| {
            let times = range.len().div_ceil(MOST_ROWS);
            for time in 0..times {
                let at = |time| range.start + time * range.len() / times;
                work(at(time)..at(time + 1));
            }
        });
    }

    /// Fills rows of the residual stream from the tables, and keeps them for the first product.
    pub(super) fn embed_tokens(&self, rows: Range<usize>, own: &mut OwnScratch<K::Value>) {
        let embeddings = &self.network.model.embeddings;
        let hidden = self.network.model.shape.hidden;
        self.normalise(rows, &embeddings.norm, &[], own, |token, row| {
            let text = self.bounds.partition_point(|&start| start <= token) - 1;
            let position = token - self.bounds[text];
            vectorised(
                self.network.arch,
                #[inline(always)]
                || embeddings.add_up(self.texts[text][position], position, &mut row[..hidden]),
            );
        });
    }

    /// Adds the last results to rows of the residual stream, normalises them, and keeps them for the next product.
    pub(super) fn add_norm(&self, norm: &Norm, rows: Range<usize>, own: &mut OwnScratch<K::Value>) {
        let mut products = std::mem::take(&mut own.products);
        let panels = self.network.model.shape.hidden.div_ceil(PANEL);
        let update = products.own(panels * rows.len(), [0.0; PANEL]);
        self.normalise(rows, norm, update, own, |_, _| {});
        own.products = products;
    }

    /// Fills rows of the residual stream, adds `update` to them, normalises them, and keeps them for the next product.
    fn normalise(
        &self,
        rows: Range<usize>,
        norm: &Norm,
        update: &[PanelRow],
        own: &mut OwnScratch<K::Value>,
        fill: impl Fn(usize, &mut [f32]),
    ) {
        let shape = self.network.model.shape;
        let Some(layer) = self.network.model.layers.first() else { return };
        let stride = shape.stride();
        let normal = own.normal.own(NORMAL_ROWS * stride, 0.0);
        for first in rows.clone().step_by(NORMAL_ROWS) {
            let some = first..(first + NORMAL_ROWS).min(rows.end);
            for (token, next) in some.clone().zip(normal.chunks_exact_mut(stride)) {
                // SAFETY: this row belongs to this part.
                let row =
                    unsafe { self.workspace.hidden.write(token * stride..(token + 1) * stride) };
                fill(token, row);
                let row = &mut row[..shape.hidden];
                let next = &mut next[..shape.hidden];
                let update = Update { panels: update, rows: rows.len(), row: token - rows.start };
                self.network.arch.dispatch(LayerNorm { row, next, norm, update });
            }
            let from = Blocks::of_rows(&normal[..some.len() * stride], stride);
            let to = some.start - rows.start..some.end - rows.start;
            let to = own.kept_hidden.write(to, 0..stride, &layer.qkv);
            self.network.kernel.keep(from, to);
        }
    }

    fn pool(&self) {
        let shape = self.network.model.shape;
        let hidden = shape.hidden;
        let stride = shape.stride();
        self.member.last_phase(self.texts.len(), self.texts.len(), |texts| {
            for text in texts {
                let rows = self.bounds[text] * stride..self.bounds[text + 1] * stride;
                // SAFETY: the last layer is done, and the text's embedding belongs to this part.
                let (rows, out) = unsafe {
                    (
                        self.workspace.hidden.read(rows),
                        self.workspace.pooled.write(text * hidden..(text + 1) * hidden),
                    )
                };
                pool(rows, stride, self.network.ending, out);
            }
        });
    }
}
