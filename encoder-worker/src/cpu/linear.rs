//! A linear layer's weights, packed once for one kernel.

use super::kernel::{
    Columns, Format, INPUT_MULTIPLE, Kernel, PANEL, Panel, PanelRow, StepOf, groups_of,
};

/// `[outputs, inputs]` weights and their bias as panels.
pub(super) struct Linear<K: Kernel> {
    /// Padded to a multiple of [`INPUT_MULTIPLE`].
    inputs: usize,
    /// All panels' steps, panel by panel.
    steps: Vec<StepOf<K>>,
    /// All panels' groups, panel by panel.
    groups: Vec<Columns>,
    bias: Vec<PanelRow>,
}

/// Weights as a model file has them: one row of inputs per output.
pub(super) struct Dense {
    /// `outputs` rows of `inputs`.
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) inputs: usize,
}

impl<K: Kernel> Linear<K> {
    pub(super) fn pack(dense: &Dense) -> Self {
        let inputs = dense.inputs.next_multiple_of(INPUT_MULTIPLE);
        let panels = dense.bias.len().div_ceil(PANEL);
        let mut packed = Self {
            inputs,
            steps: vec![K::Format::EMPTY; panels * inputs / K::Format::STEP],
            groups: vec![Columns::empty(); panels * groups_of::<K>(inputs)],
            bias: vec![[0.0; PANEL]; panels],
        };
        for (output, weights) in dense.weights.chunks_exact(dense.inputs).enumerate() {
            packed.bias[output / PANEL][output % PANEL] = dense.bias[output];
            for (group, weights) in weights.chunks(K::GROUP).enumerate() {
                packed.pack_group(output, group, weights);
            }
        }
        packed
    }

    fn pack_group(&mut self, output: usize, group: usize, weights: &[f32]) {
        let (panel, column) = (output / PANEL, output % PANEL);
        let largest = weights.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let scale = K::Format::weight_scale(largest);
        let first = panel * self.inputs + group * K::GROUP;
        let mut sum = 0.0_f64;
        for (input, &weight) in weights.iter().enumerate() {
            let step = &mut self.steps[(first + input) / K::Format::STEP];
            let index = column * K::Format::STEP + input % K::Format::STEP;
            sum += f64::from(K::Format::pack(step, index, weight, scale));
        }
        let columns = &mut self.groups[panel * groups_of::<K>(self.inputs) + group];
        columns.scale[column] = scale;
        columns.sum[column] = sum as f32;
    }

    /// Scales that a row of inputs is kept with.
    pub(super) fn row_scales(&self) -> usize {
        groups_of::<K>(self.inputs)
    }

    /// Inputs, padded.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn panels(&self) -> usize {
        self.bias.len()
    }

    pub(super) fn panel(&self, index: usize) -> Panel<'_, StepOf<K>> {
        let (steps, groups) = (self.inputs / K::Format::STEP, groups_of::<K>(self.inputs));
        Panel {
            steps: &self.steps[index * steps..][..steps],
            groups: &self.groups[index * groups..][..groups],
            bias: &self.bias[index],
        }
    }
}
