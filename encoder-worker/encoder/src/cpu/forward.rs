//! The forward pass, as one member of a team sees it: a list of phases. In a phase each part of the rows is
//! one member's, who takes it through a whole layer: of the others' rows, it reads the keys and values that
//! the phase before left, and nothing else. With a team of one it is a plain forward pass, and the result is
//! the same to the last bit.

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

/// Rows that are normalised before they are kept: what is between the two stays in the first-level cache.
const NORMAL_ROWS: usize = 4;

/// Rows that go through a layer at a time: what is between two products stays in the second-level cache.
const MOST_ROWS: usize = 96;

/// Rows below which a part is not worth reading all weights for.
const LEAST_ROWS: usize = 3;

/// A model and how it is computed.
pub(super) struct Network<K: Kernel> {
    pub(super) model: Model<K>,
    pub(super) kernel: K,
    pub(super) arch: Arch,
    pub(super) attention: Attention,
    pub(super) activation: Activation,
    pub(super) ending: Ending,
}

/// All that members of a team show each other in a forward pass; it only grows.
#[derive(Default)]
pub(super) struct Workspace {
    /// The residual stream: `[tokens, stride]`.
    hidden: Shared<f32>,
    /// Queries, keys and values: `[panels, tokens]`. One is written while the other, the layer's before, is
    /// read.
    projected: [Shared<PanelRow>; 2],
    /// `[texts, hidden]`.
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

    /// Text `index`'s embedding, after a pass.
    pub(super) fn embedding(&mut self, index: usize, width: usize) -> Vec<f32> {
        // SAFETY: nobody else has this workspace.
        unsafe { self.pooled.read(index * width..(index + 1) * width) }.to_vec()
    }
}

/// Phases of a pass through so many layers.
pub(super) const fn phases(layers: usize) -> usize {
    2 + layers
}

/// What a member has for itself.
pub(super) struct OwnScratch<V> {
    attention: Scratch,
    /// Normalised rows, padded with zeros.
    normal: Shared<f32>,
    /// What a product gives: `[panels, rows]`.
    products: Shared<PanelRow>,
    /// What the heads give: `[panels, rows]`.
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

/// One member's part of one forward pass.
pub(super) struct Pass<'a, K: Kernel> {
    pub(super) network: &'a Network<K>,
    pub(super) texts: &'a [&'a [u32]],
    /// Where each text's tokens begin, and at last where they end.
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

    /// A phase over all rows, some at a time.
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
        self.normalise(rows, (&embeddings.norm, &[]), own, |token, row| {
            let text = self.bounds.partition_point(|&start| start <= token) - 1;
            let position = token - self.bounds[text];
            vectorised(
                self.network.arch,
                #[inline(always)]
                || embeddings.add_up(self.texts[text][position], position, &mut row[..hidden]),
            );
        });
    }

    /// Adds what was computed last to rows of the residual stream, normalises them, and keeps them for the
    /// next product.
    pub(super) fn add_norm(&self, norm: &Norm, rows: Range<usize>, own: &mut OwnScratch<K::Value>) {
        let mut products = std::mem::take(&mut own.products);
        let panels = self.network.model.shape.hidden.div_ceil(PANEL);
        let update = products.own(panels * rows.len(), [0.0; PANEL]);
        self.normalise(rows, (norm, update), own, |_, _| {});
        own.products = products;
    }

    /// Fills rows of the residual stream, adds `update` to them, normalises them, and keeps them for the next
    /// product.
    fn normalise(
        &self,
        rows: Range<usize>,
        (norm, update): (&Norm, &[PanelRow]),
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
                // SAFETY: this row is of this part.
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
                // SAFETY: the last layer is done; the text's embedding is this part's.
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
