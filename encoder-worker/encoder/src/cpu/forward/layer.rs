//! Products of a layer, with self-attention and the wide layer between them.

#![allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]

use std::ops::Range;

use super::{OwnScratch, Pass};
use crate::cpu::attention::{Head, HeadRows, Scratch};
use crate::cpu::elementwise::activate;
use crate::cpu::kept::Blocks;
use crate::cpu::kernel::{Format, Kernel, NO_GROUPS, PANEL, Panel, PanelRow, Rows, StepOf};
use crate::cpu::linear::Linear;

/// Attention head of a layer.
#[derive(Debug, Clone, Copy)]
struct HeadPlace {
    layer: usize,
    /// Panel that has the head's columns.
    panel: usize,
    /// First of its columns in the panel.
    column: usize,
}

impl<K: Kernel> Pass<'_, K> {
    /// Computes the queries, keys and values that layer `index` begins with, from rows that were kept. Does nothing
    /// after the last layer.
    pub(in crate::cpu) fn project(
        &self,
        index: usize,
        rows: Range<usize>,
        own: &mut OwnScratch<K::Value>,
    ) {
        let Some(layer) = self.network.model.layers.get(index) else { return };
        let kept = own.kept_hidden.read(rows.len(), &layer.qkv);
        for panel in 0..layer.qkv.panels() {
            let start = panel * self.tokens();
            // SAFETY: these rows belong to this part, and no member reads this layer's input in this phase.
            let out = unsafe {
                self.workspace.projected[index % 2].write(start + rows.start..start + rows.end)
            };
            self.multiply(&layer.qkv, panel, Some(&layer.attention_out), kept, out);
        }
    }

    /// Multiplies rows by one panel of `linear`. After the last panel, the first of `then` is prefetched.
    fn multiply(
        &self,
        linear: &Linear,
        index: usize,
        then: Option<&Linear>,
        rows: Rows<'_, K::Value>,
        out: &mut [PanelRow],
    ) {
        let panel = self.panel(linear, index);
        let panel = match then {
            _ if index + 1 < linear.panels() => panel.before(&self.panel(linear, index + 1)),
            Some(then) => panel.before(&self.panel(then, 0)),
            None => panel,
        };
        self.network.kernel.multiply(rows, panel, out);
    }

    fn panel<'a>(&'a self, linear: &'a Linear, index: usize) -> Panel<'a, StepOf<K>> {
        self.network.model.packed.panel(linear, index)
    }

    /// Computes the self-attention of layer `index`: its update to rows of the residual stream.
    pub(in crate::cpu) fn attend(
        &self,
        index: usize,
        rows: Range<usize>,
        own: &mut OwnScratch<K::Value>,
    ) {
        let layer = &self.network.model.layers[index];
        let shape = self.network.model.shape;
        let width = shape.head_panels() * PANEL;
        let context = own.context.own(shape.head_panels() * rows.len(), [0.0; PANEL]);
        for (panel, context) in context.chunks_exact_mut(rows.len()).enumerate() {
            for column in (0..PANEL).step_by(shape.head) {
                let place = HeadPlace { layer: index, panel, column };
                self.attend_head(place, rows.clone(), &mut own.attention, context);
            }
        }
        let to = own.kept_context.write(0..rows.len(), 0..width, &layer.attention_out);
        self.network.kernel.keep(Blocks::of_panels(context, rows.len()), to);
        let kept = own.kept_context.read(rows.len(), &layer.attention_out);
        let panels = layer.attention_out.panels();
        let products = own.products.own(panels * rows.len(), [0.0; PANEL]);
        for (panel, out) in products.chunks_exact_mut(rows.len()).enumerate() {
            self.multiply(&layer.attention_out, panel, Some(&layer.up), kept, out);
        }
    }

    /// Computes the contexts of the head that begins at a column of a panel, text by text.
    fn attend_head(
        &self,
        HeadPlace { layer, panel, column }: HeadPlace,
        rows: Range<usize>,
        scratch: &mut Scratch,
        context: &mut [PanelRow],
    ) {
        let shape = self.network.model.shape;
        let tokens = self.tokens();
        let part = |part: usize, tokens_of: &Range<usize>| {
            let start = (part * shape.head_panels() + panel) * tokens;
            let of = start + tokens_of.start..start + tokens_of.end;
            // SAFETY: it was written in the phase before.
            let rows = unsafe { self.workspace.projected[layer % 2].read(of) };
            HeadRows { rows, column }
        };
        let first = self.bounds.partition_point(|&start| start <= rows.start) - 1;
        let texts = self.bounds[first..].windows(2).map(|text| text[0]..text[1]);
        for text in texts.take_while(|text| text.start < rows.end).filter(|text| !text.is_empty()) {
            let asked = text.start.max(rows.start)..text.end.min(rows.end);
            let context = &mut context[asked.start - rows.start..asked.end - rows.start];
            let query = part(0, &asked);
            let key = part(1, &text);
            let value = part(2, &text);
            let head = Head { query, key, value, width: shape.head };
            self.network.attention.attend(head, scratch, context, column);
        }
    }

    /// Computes the wide layer, a group of its outputs at a time, and the layer that narrows again: their update to
    /// rows of the residual stream.
    pub(in crate::cpu) fn widen(
        &self,
        index: usize,
        rows: Range<usize>,
        own: &mut OwnScratch<K::Value>,
    ) {
        let layer = &self.network.model.layers[index];
        let next = self.network.model.layers.get(index + 1).map(|layer| &layer.qkv);
        let kept = own.kept_hidden.read(rows.len(), &layer.up);
        let together = panels_together::<K>();
        for first in (0..layer.up.panels()).step_by(together) {
            let panels = first..(first + together).min(layer.up.panels());
            let products = own.products.own(panels.len() * rows.len(), [0.0; PANEL]);
            for (panel, out) in panels.clone().zip(products.chunks_exact_mut(rows.len())) {
                self.multiply(&layer.up, panel, Some(&layer.down), kept, out);
                let arch = self.network.arch;
                let activation = self.network.activation;
                activate(arch, out.as_flattened_mut(), activation, K::Format::NAME);
            }
            let columns = panels.start * PANEL..(panels.end * PANEL).min(layer.down.inputs());
            let to = own.kept_wide.write(0..rows.len(), columns, &layer.down);
            self.network.kernel.keep(Blocks::of_panels(products, rows.len()), to);
        }
        let kept = own.kept_wide.read(rows.len(), &layer.down);
        let products = own.products.own(layer.down.panels() * rows.len(), [0.0; PANEL]);
        for (panel, out) in products.chunks_exact_mut(rows.len()).enumerate() {
            self.multiply(&layer.down, panel, next, kept, out);
        }
    }
}

/// Returns the number of panels whose outputs are kept together, as whole groups.
fn panels_together<K: Kernel>() -> usize {
    if K::GROUP == NO_GROUPS { 1 } else { K::GROUP.div_ceil(PANEL) }
}
