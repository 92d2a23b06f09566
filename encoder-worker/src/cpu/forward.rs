//! The forward pass, as one member of a team sees it: a list of phases. In a phase every part (some rows,
//! a panel, a head) is one member's, who writes its place of one buffer and reads buffers that nobody
//! writes. With a team of one it is a plain forward pass, and the result is the same to the last bit.

#![allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]

use std::ops::Range;

use pulp::Arch;

use super::attention::{Head, HeadRows, Scratch};
use super::elementwise::{LayerNorm, Norm, activate};
use super::isa::vectorised;
use super::kernel::{Kernel, PANEL, PanelRow, RowScale, Rows, groups_of};
use super::linear::Linear;
use super::model::{Layer, Model};
use super::pool::{Ending, pool};
use super::shared::Shared;
use super::team::Member;
use crate::model_dir::Activation;

/// Rows below which splitting a panel's rows among members costs more than it brings.
const ROWS_PER_PART: usize = 24;

/// A model and how it is computed.
pub(super) struct Network<K: Kernel> {
    pub(super) model: Model<K>,
    pub(super) kernel: K,
    pub(super) arch: Arch,
    pub(super) activation: Activation,
    pub(super) ending: Ending,
}

/// Activations kept for a product: rows and their scales.
struct Kept<V> {
    values: Shared<V>,
    scales: Shared<RowScale>,
}

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self { values: Shared::default(), scales: Shared::default() }
    }
}

/// All that a forward pass writes; it only grows.
pub(super) struct Workspace<K: Kernel> {
    /// The residual stream: `[tokens, stride]`.
    hidden: Shared<f32>,
    kept_hidden: Kept<K::Value>,
    /// `[panels, tokens]`.
    qkv: Shared<PanelRow>,
    /// `[heads, tokens, head]`.
    context: Shared<f32>,
    kept_context: Kept<K::Value>,
    wide: Shared<PanelRow>,
    kept_wide: Kept<K::Value>,
    /// What a layer's half adds to the residual stream: `[panels, tokens]`.
    update: Shared<PanelRow>,
    /// `[texts, hidden]`.
    pooled: Shared<f32>,
}

impl<K: Kernel> Default for Workspace<K> {
    fn default() -> Self {
        Self {
            hidden: Shared::default(),
            kept_hidden: Kept::default(),
            qkv: Shared::default(),
            context: Shared::default(),
            kept_context: Kept::default(),
            wide: Shared::default(),
            kept_wide: Kept::default(),
            update: Shared::default(),
            pooled: Shared::default(),
        }
    }
}

impl<K: Kernel> Workspace<K> {
    /// Makes room for a batch.
    pub(super) fn grow(&mut self, network: &Network<K>, texts: usize, tokens: usize) {
        let shape = network.model.shape;
        let Some(layer) = network.model.layers.first() else { return };
        let empty = [0.0; PANEL];
        self.hidden.grow(tokens * shape.stride(), 0.0);
        self.kept_hidden.grow(tokens, &layer.qkv);
        self.qkv.grow(layer.qkv.panels() * tokens, empty);
        self.context.grow(tokens * shape.heads * shape.head, 0.0);
        self.kept_context.grow(tokens, &layer.attention_out);
        self.wide.grow(layer.up.panels() * tokens, empty);
        self.kept_wide.grow(tokens, &layer.down);
        self.update.grow(layer.down.panels() * tokens, empty);
        self.pooled.grow(texts * shape.hidden, 0.0);
    }

    /// Text `index`'s embedding, after a pass.
    pub(super) fn embedding(&mut self, index: usize, width: usize) -> Vec<f32> {
        // SAFETY: nobody else has this workspace.
        unsafe { self.pooled.read(index * width..(index + 1) * width) }.to_vec()
    }
}

impl<V: Copy + Default> Kept<V> {
    fn grow<K: Kernel<Value = V>>(&mut self, rows: usize, linear: &Linear<K>) {
        self.values.grow(rows * linear.inputs(), V::default());
        self.scales.grow(rows * linear.row_scales(), RowScale::default());
    }
}

/// Phases of a pass through so many layers.
pub(super) const fn phases(layers: usize) -> usize {
    2 + 9 * layers
}

/// What a member has for itself.
#[derive(Default)]
pub(super) struct OwnScratch {
    attention: Scratch,
    row: Vec<f32>,
}

/// One member's part of one forward pass.
pub(super) struct Pass<'a, K: Kernel> {
    pub(super) network: &'a Network<K>,
    pub(super) texts: &'a [&'a [u32]],
    /// Where each text's tokens begin, and at last where they end.
    pub(super) bounds: &'a [usize],
    pub(super) workspace: &'a Workspace<K>,
    pub(super) member: &'a Member<'a>,
}

impl<K: Kernel> Pass<'_, K> {
    pub(super) fn run(&self, own: &mut OwnScratch) {
        own.row.resize(self.network.model.shape.stride(), 0.0);
        self.embed_tokens(own);
        for layer in &self.network.model.layers {
            self.attend(layer, own);
            self.feed_forward(layer, own);
        }
        self.pool();
    }

    fn attend(&self, layer: &Layer<K>, own: &mut OwnScratch) {
        let work = self.workspace;
        self.multiply(&layer.qkv, &work.kept_hidden, &work.qkv, None);
        self.attend_heads(own);
        let shape = self.network.model.shape;
        self.keep(&work.kept_context, layer.attention_out.inputs(), own, |token, row| {
            for (head, part) in row.chunks_exact_mut(shape.head).enumerate() {
                let start = (head * self.tokens() + token) * shape.head;
                // SAFETY: heads have been attended to; nobody writes the context now.
                part.copy_from_slice(unsafe { work.context.read(start..start + shape.head) });
            }
        });
        self.multiply(&layer.attention_out, &work.kept_context, &work.update, None);
        self.add_norm(&layer.attention_norm, own);
    }

    fn feed_forward(&self, layer: &Layer<K>, own: &mut OwnScratch) {
        let work = self.workspace;
        self.multiply(&layer.up, &work.kept_hidden, &work.wide, Some(self.network.activation));
        self.keep(&work.kept_wide, layer.down.inputs(), own, |token, row| {
            for (panel, part) in row.chunks_mut(PANEL).enumerate() {
                let at = panel * self.tokens() + token;
                // SAFETY: the layer's first half is done; nobody writes it now.
                let from = unsafe { work.wide.read(at..at + 1) };
                part.copy_from_slice(&from[0][..part.len()]);
            }
        });
        self.multiply(&layer.down, &work.kept_wide, &work.update, None);
        self.add_norm(&layer.down_norm, own);
    }

    fn tokens(&self) -> usize {
        self.bounds.last().copied().unwrap_or_default()
    }

    /// Fills the residual stream from the tables, and keeps it for the first product.
    fn embed_tokens(&self, own: &mut OwnScratch) {
        let model = &self.network.model;
        let (hidden, stride) = (model.shape.hidden, model.shape.stride());
        self.for_tokens(|token| {
            let text = self.bounds.partition_point(|&start| start <= token) - 1;
            let position = token - self.bounds[text];
            let id = self.texts[text][position];
            // SAFETY: this row is of this part.
            let row = unsafe { self.workspace.hidden.write(token * stride..(token + 1) * stride) };
            vectorised(
                self.network.arch,
                #[inline(always)]
                || model.embeddings.add_up(id, position, &mut row[..hidden]),
            );
            self.normalise(&model.embeddings.norm, &mut row[..hidden], own);
            self.keep_hidden(token, &own.row);
        });
    }

    /// A phase over all rows.
    fn for_tokens(&self, mut work: impl FnMut(usize)) {
        self.member.phase(self.tokens(), self.member.count, |range| range.for_each(&mut work));
    }

    fn multiply(
        &self,
        linear: &Linear<K>,
        rows: &Kept<K::Value>,
        out: &Shared<PanelRow>,
        activation: Option<Activation>,
    ) {
        let (tokens, inputs, scales) = (self.tokens(), linear.inputs(), linear.row_scales());
        let parts = self.row_parts(linear.panels());
        self.for_units(linear.panels() * parts, |unit| {
            let (panel, part) = (unit / parts, unit % parts);
            let range = part * tokens / parts..(part + 1) * tokens / parts;
            // SAFETY: the rows were kept in an earlier phase; the panel's rows are this unit's.
            let (values, scales, out) = unsafe {
                (
                    rows.values.read(range.start * inputs..range.end * inputs),
                    rows.scales.read(range.start * scales..range.end * scales),
                    out.write(panel * tokens + range.start..panel * tokens + range.end),
                )
            };
            self.network.kernel.multiply(Rows { values, scales, inputs }, linear.panel(panel), out);
            if let Some(activation) = activation {
                activate(self.network.arch, out.as_flattened_mut(), activation);
            }
        });
    }

    /// A phase over parts of which each is worth taking alone.
    fn for_units(&self, units: usize, mut work: impl FnMut(usize)) {
        self.member.phase(units, units, |range| range.for_each(&mut work));
    }

    /// Into how many parts a panel's rows are cut: more than one when there are too few panels for the
    /// members to have equal shares.
    fn row_parts(&self, panels: usize) -> usize {
        if panels.is_multiple_of(self.member.count) {
            return 1;
        }
        (self.tokens() / ROWS_PER_PART).clamp(1, self.member.count)
    }

    fn attend_heads(&self, own: &mut OwnScratch) {
        let (shape, texts) = (self.network.model.shape, self.texts.len());
        self.for_units(shape.heads * texts, |unit| {
            let (index, text) = (unit / texts, unit % texts);
            let text = self.bounds[text]..self.bounds[text + 1];
            let head = Head {
                query: self.head_rows(0, index, &text),
                key: self.head_rows(1, index, &text),
                value: self.head_rows(2, index, &text),
                width: shape.head,
            };
            let first = index * self.tokens();
            let range = (first + text.start) * shape.head..(first + text.end) * shape.head;
            // SAFETY: this head of this text is this unit's.
            let context = unsafe { self.workspace.context.write(range) };
            head.attend(self.network.arch, &mut own.attention, context);
        });
    }

    /// Rows of queries (`part` 0), keys (1) or values (2).
    fn head_rows(&self, part: usize, head: usize, text: &Range<usize>) -> HeadRows<'_> {
        let shape = self.network.model.shape;
        let column = (part * shape.heads + head) * shape.head;
        let first = column / PANEL * self.tokens();
        // SAFETY: the projections were computed in an earlier phase.
        let rows = unsafe { self.workspace.qkv.read(first + text.start..first + text.end) };
        HeadRows { rows, column: column % PANEL }
    }

    /// Keeps the rows that `gather` writes, for the next product.
    fn keep(
        &self,
        kept: &Kept<K::Value>,
        inputs: usize,
        own: &mut OwnScratch,
        gather: impl Fn(usize, &mut [f32]),
    ) {
        own.row.clear();
        own.row.resize(inputs, 0.0);
        self.for_tokens(|token| {
            gather(token, &mut own.row);
            self.keep_row(kept, token, &own.row);
        });
    }

    fn keep_hidden(&self, token: usize, row: &[f32]) {
        self.keep_row(&self.workspace.kept_hidden, token, row);
    }

    fn keep_row(&self, kept: &Kept<K::Value>, token: usize, row: &[f32]) {
        let scales = groups_of::<K>(row.len());
        // SAFETY: this row is of this part.
        let (values, scales) = unsafe {
            (
                kept.values.write(token * row.len()..(token + 1) * row.len()),
                kept.scales.write(token * scales..(token + 1) * scales),
            )
        };
        self.network.kernel.keep(row, values, scales);
    }

    /// Adds the update to the residual stream, normalises, and keeps it for the next product.
    fn add_norm(&self, norm: &Norm, own: &mut OwnScratch) {
        let shape = self.network.model.shape;
        let stride = shape.stride();
        own.row.clear();
        own.row.resize(stride, 0.0);
        self.for_tokens(|token| {
            // SAFETY: this row is of this part.
            let row = unsafe { self.workspace.hidden.write(token * stride..(token + 1) * stride) };
            vectorised(
                self.network.arch,
                #[inline(always)]
                || {
                    for (panel, part) in row[..shape.hidden].chunks_mut(PANEL).enumerate() {
                        let at = panel * self.tokens() + token;
                        // SAFETY: the update was computed in an earlier phase.
                        let update = unsafe { self.workspace.update.read(at..at + 1) };
                        part.iter_mut().zip(&update[0]).for_each(|(x, y)| *x += y);
                    }
                },
            );
            self.normalise(norm, &mut row[..shape.hidden], own);
            self.keep_hidden(token, &own.row);
        });
    }

    /// Normalises a row of the residual stream; this member's scratch row gets what the next product takes.
    fn normalise(&self, norm: &Norm, row: &mut [f32], own: &mut OwnScratch) {
        let next = &mut own.row[..row.len()];
        self.network.arch.dispatch(LayerNorm { row, next, norm });
    }

    fn pool(&self) {
        let shape = self.network.model.shape;
        let (hidden, stride) = (shape.hidden, shape.stride());
        self.for_units(self.texts.len(), |text| {
            let rows = self.bounds[text] * stride..self.bounds[text + 1] * stride;
            // SAFETY: the last layer is done; the text's embedding is this unit's.
            let (rows, out) = unsafe {
                (
                    self.workspace.hidden.read(rows),
                    self.workspace.pooled.write(text * hidden..(text + 1) * hidden),
                )
            };
            pool(rows, stride, self.network.ending, out);
        });
    }
}
