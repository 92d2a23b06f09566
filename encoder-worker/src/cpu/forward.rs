//! The forward pass, as one member of a team sees it: a list of phases. In a phase every part (some rows,
//! a panel, a head) is one member's, who writes its place of one buffer and reads buffers that nobody
//! writes. With a team of one it is a plain forward pass, and the result is the same to the last bit.

#![allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]

mod halves;

use std::ops::Range;

use pulp::Arch;

use super::attention::Scratch;
use super::elementwise::{LayerNorm, Norm};
use super::isa::vectorised;
use super::kept::{Blocks, Kept};
use super::kernel::{Kernel, PANEL, Panel, PanelRow, StepOf};
use super::linear::Linear;
use super::model::Model;
use super::pool::{Ending, pool};
use super::shared::Shared;
use super::team::Member;
use crate::model_dir::Activation;

/// Rows that are normalised before they are kept.
const ROWS_AT_A_TIME: usize = 16;

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

/// All that members of a team show each other in a forward pass; it only grows.
pub(super) struct Workspace<K: Kernel> {
    /// The residual stream: `[tokens, stride]`.
    hidden: Shared<f32>,
    kept_hidden: Kept<K::Value>,
    kept_context: Kept<K::Value>,
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
            kept_context: Kept::default(),
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
        self.hidden.grow(tokens * shape.stride(), 0.0);
        self.kept_hidden.grow(tokens, &layer.qkv);
        self.kept_context.grow(tokens, &layer.attention_out);
        self.kept_wide.grow(tokens, &layer.down);
        self.update.grow(layer.down.panels() * tokens, [0.0; PANEL]);
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
    2 + 6 * layers
}

/// What a member has for itself.
#[derive(Default)]
pub(super) struct OwnScratch {
    attention: Scratch,
    /// Normalised rows, padded with zeros.
    rows: Vec<f32>,
    /// What goes from one product to the next: `[panels, rows]`.
    panels: Vec<PanelRow>,
    /// A panel of heads' contexts: `[heads, tokens, head]`.
    context: Vec<f32>,
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
        self.embed_tokens(own);
        let layers = &self.network.model.layers;
        for (layer, next) in layers.iter().zip(layers.iter().skip(1).chain(layers.first())) {
            self.attend(layer, own);
            self.project(&layer.attention_out, &self.workspace.kept_context, self.first_up(layer));
            self.add_norm(&layer.attention_norm, own);
            self.widen(layer, own);
            self.project(&layer.down, &self.workspace.kept_wide, self.first_query(next));
            self.add_norm(&layer.down_norm, own);
        }
        self.pool();
    }

    fn tokens(&self) -> usize {
        self.bounds.last().copied().unwrap_or_default()
    }

    /// Fills the residual stream from the tables, and keeps it for the first product.
    fn embed_tokens(&self, own: &mut OwnScratch) {
        let embeddings = &self.network.model.embeddings;
        let hidden = self.network.model.shape.hidden;
        self.for_rows(own, &embeddings.norm, |token, row| {
            let text = self.bounds.partition_point(|&start| start <= token) - 1;
            let position = token - self.bounds[text];
            embeddings.add_up(self.texts[text][position], position, &mut row[..hidden]);
        });
    }

    /// What is added to the residual stream: `rows` by `linear`. `then` is what the phase after the next
    /// begins with.
    fn project(&self, linear: &Linear, rows: &Kept<K::Value>, then: Panel<'_, StepOf<K>>) {
        let tokens = self.tokens();
        let parts = self.row_parts(linear.panels());
        let units = linear.panels() * parts;
        self.for_units(units, |unit| {
            let (panel, part) = (unit / parts, unit % parts);
            let range = part * tokens / parts..(part + 1) * tokens / parts;
            // SAFETY: the panel's rows are this unit's.
            let out = unsafe {
                self.workspace
                    .update
                    .write(panel * tokens + range.start..panel * tokens + range.end)
            };
            let next = self.member.after(unit, units);
            let next = next.map_or(then, |unit| self.panel(linear, unit / parts));
            self.multiply(self.panel(linear, panel).before(&next), (linear, rows, range), out);
        });
    }

    fn panel<'a>(&'a self, linear: &'a Linear, index: usize) -> Panel<'a, StepOf<K>> {
        self.network.model.packed.panel(linear, index)
    }

    /// Some rows, which were kept in an earlier phase, by one panel.
    fn multiply(
        &self,
        panel: Panel<'_, StepOf<K>>,
        (linear, rows, range): (&Linear, &Kept<K::Value>, Range<usize>),
        out: &mut [PanelRow],
    ) {
        // SAFETY: nobody writes what was kept in an earlier phase.
        let rows = unsafe { rows.read(range, linear) };
        self.network.kernel.multiply(rows, panel, out);
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

    /// Adds the update to the residual stream, normalises, and keeps it for the next product.
    fn add_norm(&self, norm: &Norm, own: &mut OwnScratch) {
        let shape = self.network.model.shape;
        self.for_rows(own, norm, |token, row| {
            for (panel, part) in row[..shape.hidden].chunks_mut(PANEL).enumerate() {
                let at = panel * self.tokens() + token;
                // SAFETY: the update was computed in an earlier phase.
                let update = unsafe { self.workspace.update.read(at..at + 1) };
                part.iter_mut().zip(&update[0]).for_each(|(x, y)| *x += y);
            }
        });
    }

    /// A phase that changes all rows of the residual stream with `change`, normalises them, and keeps
    /// them for the next product.
    fn for_rows(&self, own: &mut OwnScratch, norm: &Norm, change: impl Fn(usize, &mut [f32])) {
        let (shape, arch) = (self.network.model.shape, self.network.arch);
        let stride = shape.stride();
        let Some(layer) = self.network.model.layers.first() else { return };
        own.rows.clear();
        own.rows.resize(ROWS_AT_A_TIME * stride, 0.0);
        self.member.phase(self.tokens(), self.member.count, |range| {
            for start in range.clone().step_by(ROWS_AT_A_TIME) {
                let rows = start..(start + ROWS_AT_A_TIME).min(range.end);
                for (token, next) in rows.clone().zip(own.rows.chunks_exact_mut(stride)) {
                    // SAFETY: this row is of this part.
                    let row = unsafe {
                        self.workspace.hidden.write(token * stride..(token + 1) * stride)
                    };
                    vectorised(
                        arch,
                        #[inline(always)]
                        || change(token, row),
                    );
                    let (row, next) = (&mut row[..shape.hidden], &mut next[..shape.hidden]);
                    arch.dispatch(LayerNorm { row, next, norm });
                }
                // SAFETY: these rows are of this part.
                let to = unsafe { self.workspace.kept_hidden.write(start, 0..stride, &layer.qkv) };
                let from = Blocks::of_rows(&own.rows[..rows.len() * stride], stride);
                self.network.kernel.keep(from, to);
            }
        });
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
