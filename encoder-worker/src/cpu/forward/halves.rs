//! The two products of each half of a layer that run into each other: what one gives goes through the
//! attention, or through the activation, and is kept for the next, before anybody else has seen it.

#![allow(unsafe_code, reason = "members of a team write disjoint parts of one buffer")]

use std::ops::Range;

use super::{OwnScratch, Pass};
use crate::cpu::attention::{Head, HeadRows};
use crate::cpu::elementwise::activate;
use crate::cpu::kept::Blocks;
use crate::cpu::kernel::{Kernel, NO_GROUPS, PANEL, Panel, StepOf};
use crate::cpu::model::Layer;

/// Rows that go through the activation at a time: what is between two products stays in the cache.
const ROWS_AT_A_TIME: usize = 96;

impl<K: Kernel> Pass<'_, K> {
    /// Self-attention, a panel of heads at a time: projects the residual stream, attends, and keeps the
    /// context.
    pub(super) fn attend(&self, layer: &Layer, own: &mut OwnScratch) {
        let (tokens, units) = (self.tokens(), self.network.model.shape.head_panels());
        let then = self.member.share(layer.attention_out.panels()).start;
        self.for_units(units, |unit| {
            own.panels.resize((3 * tokens).max(own.panels.len()), [0.0; PANEL]);
            for (part, out) in own.panels[..3 * tokens].chunks_exact_mut(tokens).enumerate() {
                let rows = (&layer.qkv, &self.workspace.kept_hidden, 0..tokens);
                let next = match (part, self.member.after(unit, units)) {
                    (0 | 1, _) => self.panel(&layer.qkv, (part + 1) * units + unit),
                    (_, Some(unit)) => self.panel(&layer.qkv, unit),
                    (_, None) => self.panel(&layer.attention_out, then),
                };
                let panel = self.panel(&layer.qkv, part * units + unit);
                self.multiply(panel.before(&next), rows, out);
            }
            own.context.resize((PANEL * tokens).max(own.context.len()), 0.0);
            self.attend_panel(own);
            let columns = unit * PANEL..(unit + 1) * PANEL;
            // SAFETY: these columns are this unit's.
            let to = unsafe { self.workspace.kept_context.write(0, columns, &layer.attention_out) };
            let head = self.network.model.shape.head;
            let from = Blocks::of_matrices(&own.context[..PANEL * tokens], (tokens, head));
            self.network.kernel.keep(from, to);
        });
    }

    /// The heads of the panels in `own`, one after another, text by text.
    fn attend_panel(&self, own: &mut OwnScratch) {
        let (tokens, head) = (self.tokens(), self.network.model.shape.head);
        let OwnScratch { panels, context, attention, .. } = own;
        let rows_of = |part: usize, text: &Range<usize>, column: usize| HeadRows {
            rows: &panels[part * tokens + text.start..part * tokens + text.end],
            column,
        };
        for (index, context) in
            context[..PANEL * tokens].chunks_exact_mut(head * tokens).enumerate()
        {
            for text in self.bounds.windows(2).map(|text| text[0]..text[1]) {
                let [query, key, value] = [0, 1, 2].map(|part| rows_of(part, &text, index * head));
                let head = Head { query, key, value, width: head };
                let context = &mut context[text.start * head.width..text.end * head.width];
                head.attend(self.network.arch, attention, context);
            }
        }
    }

    /// The panel that this member's attention begins with.
    pub(super) fn first_query<'a>(&'a self, layer: &'a Layer) -> Panel<'a, StepOf<K>> {
        let units = self.network.model.shape.head_panels();
        self.panel(&layer.qkv, self.member.share(units).start)
    }

    /// The wide layer, a group of its outputs at a time: multiplies, activates, and keeps for the layer
    /// that narrows again.
    pub(super) fn widen(&self, layer: &Layer, own: &mut OwnScratch) {
        let units = self.wide_units(layer);
        let parts = self.tokens().div_ceil(ROWS_AT_A_TIME).max(self.row_parts(units));
        let then = self.panel(&layer.down, self.member.share(layer.down.panels()).start);
        self.for_units(units * parts, |unit| {
            let next = self.member.after(unit, units * parts);
            let next = next.map_or(then, |next| {
                self.panel(&layer.up, self.wide_panels(layer, next / parts).start)
            });
            let (unit, part) = (unit / parts, unit % parts);
            let rows = part * self.tokens() / parts..(part + 1) * self.tokens() / parts;
            self.widen_rows(layer, (self.wide_panels(layer, unit), rows), next, own);
        });
    }

    /// The panel that this member's wide layer begins with.
    pub(super) fn first_up<'a>(&'a self, layer: &'a Layer) -> Panel<'a, StepOf<K>> {
        let unit = self.member.share(self.wide_units(layer)).start;
        self.panel(&layer.up, self.wide_panels(layer, unit).start)
    }

    /// How many groups of panels the wide layer's outputs are.
    fn wide_units(&self, layer: &Layer) -> usize {
        layer.up.panels().div_ceil(panels_together::<K>())
    }

    fn wide_panels(&self, layer: &Layer, unit: usize) -> Range<usize> {
        let together = panels_together::<K>();
        unit * together..((unit + 1) * together).min(layer.up.panels())
    }

    /// `next` is the panel that comes after these.
    fn widen_rows(
        &self,
        layer: &Layer,
        (panels, rows): (Range<usize>, Range<usize>),
        next: Panel<'_, StepOf<K>>,
        own: &mut OwnScratch,
    ) {
        let (count, len) = (rows.len(), panels.len() * rows.len());
        own.panels.resize(len.max(own.panels.len()), [0.0; PANEL]);
        for (index, out) in panels.clone().zip(own.panels[..len].chunks_exact_mut(count)) {
            let last = index + 1 == panels.end;
            let next = if last { next } else { self.panel(&layer.up, index + 1) };
            let rows = (&layer.up, &self.workspace.kept_hidden, rows.clone());
            self.multiply(self.panel(&layer.up, index).before(&next), rows, out);
            activate(self.network.arch, out.as_flattened_mut(), self.network.activation);
        }
        let columns = panels.start * PANEL..(panels.end * PANEL).min(layer.down.inputs());
        let from = Blocks::of_panels(&own.panels[..len], count);
        // SAFETY: these columns of these rows are this unit's.
        let to = unsafe { self.workspace.kept_wide.write(rows.start, columns, &layer.down) };
        self.network.kernel.keep(from, to);
    }
}

/// Panels whose outputs are kept together, as whole groups.
fn panels_together<K: Kernel>() -> usize {
    if K::GROUP == NO_GROUPS { 1 } else { K::GROUP.div_ceil(PANEL) }
}
