//! A linear layer's weights, packed once for one kernel.

use super::kernel::{Columns, INPUT_MULTIPLE, Kernel, PANEL, Panel};

/// `[outputs, inputs]` weights and their bias as panels.
pub(super) struct Linear<K: Kernel> {
    /// Padded to a multiple of [`INPUT_MULTIPLE`].
    inputs: usize,
    /// All panels' steps, panel by panel.
    steps: Vec<K::Step>,
    columns: Vec<Columns>,
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
        let mut steps = vec![K::empty_step(); panels * inputs / K::STEP];
        let mut columns = vec![Columns::empty(); panels];
        for (output, weights) in dense.weights.chunks_exact(dense.inputs).enumerate() {
            let (panel, column) = (output / PANEL, output % PANEL);
            let largest = weights.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let scale = K::weight_scale(largest);
            let first = panel * inputs / K::STEP;
            let mut sum = 0.0_f64;
            for (input, &weight) in weights.iter().enumerate() {
                let step = &mut steps[first + input / K::STEP];
                let index = column * K::STEP + input % K::STEP;
                sum += f64::from(K::pack(step, index, weight, scale));
            }
            columns[panel].scale[column] = scale;
            columns[panel].sum[column] = sum as f32;
            columns[panel].bias[column] = dense.bias[output];
        }
        Self { inputs, steps, columns }
    }

    /// Inputs, padded.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn panels(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn panel(&self, index: usize) -> Panel<'_, K::Step> {
        let steps = self.inputs / K::STEP;
        Panel { steps: &self.steps[index * steps..][..steps], columns: &self.columns[index] }
    }
}
