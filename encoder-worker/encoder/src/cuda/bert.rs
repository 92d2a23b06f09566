//! GPU implementation of the batching loop's backend interface.

use cudarc::driver::CudaSlice;
use half::bf16;

use super::element::Element;
use super::error::GpuError;
use super::forward::{forward, launches};
use super::gpu::{Gpu, Matrix, upload};
use super::limits::{GpuFormat, check_sizes, gpu_format};
use super::model::{self, Model};
use super::plan::warm_up;
use super::probe::{self, OpenGpu};
use crate::backend::{Backend, BackendError, Batch, BatchLimits};
use crate::device::{Device, NumberFormat};
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::weights::{Weights, WeightsFile};

/// Tokens of a batch: with fewer, much of a GPU's time goes into starting its kernels.
const BATCH_TOKENS: usize = 16_384;

/// Model on one GPU.
struct CudaBert<T> {
    name: String,
    network: Model<Matrix<T>, CudaSlice<f32>>,
    gpu: Gpu<T>,
}

/// Loads the model onto the GPU `index`, and compiles the kernels for it.
pub(crate) fn load(
    model: &ModelDir,
    weights: &WeightsFile,
    index: usize,
    format: NumberFormat,
) -> Result<Box<dyn Backend>, LoadError> {
    let refuse = |cause: String| LoadError::Device { device: Device::Cuda(index), cause };
    let format = gpu_format(format, Device::Cuda(index))?;
    check_sizes(model)?;
    let device = probe::open(index).map_err(|unusable| refuse(unusable.to_string()))?;
    let weights = Weights::open(model, weights)?;
    let loaded = match format {
        GpuFormat::Bf16 => CudaBert::<bf16>::load(&device, &weights, index)?,
        GpuFormat::F32 => CudaBert::<f32>::load(&device, &weights, index)?,
    };
    loaded.map_err(|error| refuse(error.to_string()))
}

impl<T: Element> CudaBert<T> {
    /// Loads the model. The outer error concerns the weights, the inner one the GPU.
    fn load(
        device: &OpenGpu,
        weights: &Weights<'_>,
        index: usize,
    ) -> Result<Result<Box<dyn Backend>, GpuError>, LoadError> {
        let network = model::read(weights)?;
        let build = || {
            let gpu = Gpu::<T>::new(device, weights.model())?;
            let name = format!("cuda:{index}-{}", T::NAME);
            let launches = launches(network.layers.len());
            tracing::info!(backend = name, launches, "a batch takes this many launches");
            let network = upload(&device.stream, network)?;
            Ok(Box::new(Self { name, network, gpu }) as Box<dyn Backend>)
        };
        Ok(build())
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, GpuError> {
        self.gpu.send(batch)?;
        forward(&self.network, &mut self.gpu)?;
        self.gpu.receive()
    }

    /// Returns the error of a batch, once no work of it is in progress: it must not write into the buffers of the next.
    fn failed(&self, error: &GpuError) -> BackendError {
        let unsettled = self.gpu.settle().err().map(|error| format!("; then {error}"));
        BackendError(format!("{}: {error}{}", self.name, unsettled.unwrap_or_default()))
    }
}

impl<T: Element> Backend for CudaBert<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch_tokens(&self) -> usize {
        BATCH_TOKENS
    }

    fn prepare(&mut self, limits: BatchLimits) -> Result<(), BackendError> {
        for batch in warm_up(limits) {
            self.run(&batch).map_err(|error| {
                let BackendError(cause) = self.failed(&error);
                let texts = batch.texts();
                let tokens = batch.tokens();
                BackendError(format!("{cause}, in a batch of {texts} texts and {tokens} tokens"))
            })?;
        }
        let room = self.gpu.room();
        tracing::info!(tokens = room.tokens, texts = room.texts, "the GPU has memory for a batch");
        Ok(())
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        self.run(batch).map_err(|error| self.failed(&error))
    }
}
