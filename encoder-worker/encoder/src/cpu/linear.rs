//! Weights of linear layers, packed once for one kernel.

use std::ops::Range;

use super::kernel::{Columns, Format, INPUT_MULTIPLE, Kernel, PANEL, Panel, PanelRow, StepOf};
use crate::pages::room_on_large_pages;

/// Weights of all linear layers, one after another.
pub(super) struct Packed<K: Kernel> {
    steps: Vec<StepOf<K>>,
}

impl<K: Kernel> Default for Packed<K> {
    fn default() -> Self {
        Self { steps: Vec::new() }
    }
}

/// Linear layer: `[outputs, inputs]` weights and their bias as panels.
pub(super) struct Linear {
    /// Number of inputs, padded to a multiple of [`INPUT_MULTIPLE`].
    inputs: usize,
    /// Inputs that share a scale.
    group: usize,
    /// Range of all panels' steps, panel by panel, in [`Packed::steps`].
    steps: Range<usize>,
    /// Groups of all panels, panel by panel.
    groups: Vec<Columns>,
    bias: Vec<PanelRow>,
}

/// Weights as stored in a model file: one row of inputs per output.
pub(super) struct Dense {
    /// Weights: `outputs` rows of `inputs`.
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) inputs: usize,
}

impl<K: Kernel> Packed<K> {
    /// Packs `dense`; `group` inputs share a scale.
    pub(super) fn pack(&mut self, dense: &Dense, group: usize) -> Linear {
        let inputs = dense.inputs.next_multiple_of(INPUT_MULTIPLE);
        let panels = dense.bias.len().div_ceil(PANEL);
        let first = self.steps.len();
        self.steps.resize(first + panels * inputs / K::Format::STEP, K::Format::EMPTY);
        let mut linear = Linear {
            inputs,
            group,
            steps: first..self.steps.len(),
            groups: vec![Columns::empty(); panels * inputs.div_ceil(group)],
            bias: vec![[0.0; PANEL]; panels],
        };
        for (output, weights) in dense.weights.chunks_exact(dense.inputs).enumerate() {
            linear.bias[output / PANEL][output % PANEL] = dense.bias[output];
            for (group, weights) in weights.chunks(group).enumerate() {
                self.pack_group(&mut linear, output, group, weights);
            }
        }
        linear
    }

    fn pack_group(&mut self, linear: &mut Linear, output: usize, group: usize, weights: &[f32]) {
        let panel = output / PANEL;
        let column = output % PANEL;
        let largest = weights.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let scale = K::Format::weight_scale(largest);
        let steps = &mut self.steps[linear.steps.clone()];
        let first = panel * linear.inputs + group * linear.group;
        let mut sum = 0.0_f64;
        for (input, &weight) in weights.iter().enumerate() {
            let step = &mut steps[(first + input) / K::Format::STEP];
            let index = column * K::Format::STEP + input % K::Format::STEP;
            sum += f64::from(K::Format::pack(step, index, weight, scale));
        }
        let index = panel * linear.row_scales() + group;
        let columns = &mut linear.groups[index];
        columns.scale[column] = scale;
        columns.sum[column] = sum as f32;
    }

    /// Moves the weights to large pages, where they are read fastest, with room for `times` as many in all.
    pub(super) fn settle_with_room(&mut self, times: usize) {
        let mut steps = room_on_large_pages(self.steps.len().saturating_mul(times));
        steps.append(&mut self.steps);
        self.steps = steps;
    }

    /// Returns panel `index` of a layer that was packed here.
    pub(super) fn panel<'a>(&'a self, linear: &'a Linear, index: usize) -> Panel<'a, StepOf<K>> {
        let steps = linear.inputs / K::Format::STEP;
        let groups = linear.row_scales();
        Panel {
            steps: &self.steps[linear.steps.clone()][index * steps..][..steps],
            group_steps: linear.group / K::Format::STEP,
            groups: &linear.groups[index * groups..][..groups],
            bias: &linear.bias[index],
            ahead: &[],
        }
    }
}

impl Linear {
    /// Returns the number of scales of a kept row of inputs.
    pub(super) fn row_scales(&self) -> usize {
        self.inputs.div_ceil(self.group)
    }

    /// Returns the number of inputs that share a scale.
    pub(super) fn group(&self) -> usize {
        self.group
    }

    /// Returns the number of inputs, padded.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn panels(&self) -> usize {
        self.bias.len()
    }
}
