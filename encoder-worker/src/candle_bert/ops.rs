//! What happens between the matrix products, as candle operations that change a tensor in place and
//! use all threads of the current pool on large batches.

use candle_core::{CpuStorage, InplaceOp2, InplaceOp3, Layout, Result};
use pulp::Arch;
use rayon::prelude::*;

use super::kernels::{self, NormRow};
use super::storage::{floats, floats_mut, width_of};
use crate::model_dir::Activation;

/// Values below which waking another thread costs more than it saves.
const VALUES_PER_TASK: usize = 32 * 1024;

/// `x = activation(x + bias)`.
pub(super) struct BiasActivation {
    pub(super) arch: Arch,
    pub(super) activation: Activation,
}

impl InplaceOp2 for BiasActivation {
    fn name(&self) -> &'static str {
        "bias-activation"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<()> {
        let width = width_of(x_layout)?;
        let bias = floats(bias, bias_layout)?;
        let rows = rows_per_task(width);
        floats_mut(x, x_layout)?.par_chunks_mut(rows * width).for_each(|rows| {
            self.arch.dispatch(|| kernels::bias_activation(rows, bias, self.activation));
        });
        Ok(())
    }
}

/// `x = layer_norm(x + bias + residual)`, with `bias`, `gamma` and `beta` as the rows of one tensor.
pub(super) struct AddNorm {
    pub(super) arch: Arch,
    pub(super) epsilon: f32,
}

impl InplaceOp3 for AddNorm {
    fn name(&self) -> &'static str {
        "add-norm"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        residual: &CpuStorage,
        residual_layout: &Layout,
        parameters: &CpuStorage,
        parameters_layout: &Layout,
    ) -> Result<()> {
        let width = width_of(x_layout)?;
        let residual = floats(residual, residual_layout)?;
        let parameters = floats(parameters, parameters_layout)?;
        let (bias, rest) = parameters.split_at(width);
        let (gamma, beta) = rest.split_at(width);
        let norm = NormRow { gamma, beta, epsilon: self.epsilon };
        let chunk = rows_per_task(width) * width;
        floats_mut(x, x_layout)?.par_chunks_mut(chunk).zip(residual.par_chunks(chunk)).for_each(
            |(rows, residuals)| {
                self.arch.dispatch(|| {
                    let residuals = residuals.chunks_exact(width);
                    for (row, residual) in rows.chunks_exact_mut(width).zip(residuals) {
                        kernels::add_norm(row, residual, bias, &norm);
                    }
                });
            },
        );
        Ok(())
    }
}

fn rows_per_task(width: usize) -> usize {
    (VALUES_PER_TASK / width).max(1)
}
