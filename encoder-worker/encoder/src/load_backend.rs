//! Choice of the backend that loads a model: the only module that depends on all backends.

use crate::backend::Backend;
use crate::cpu;
#[cfg(target_os = "linux")]
use crate::cuda::{has_driver, load as load_cuda};
use crate::device::{Device, NumberFormat};
use crate::encoder::EncoderConfig;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::weights::{Weights, WeightsFile};

/// Loads `weights` onto the device that `config` asks for.
pub(crate) fn load_backend(
    model: &ModelDir,
    weights: &WeightsFile,
    config: &EncoderConfig,
) -> Result<Box<dyn Backend>, LoadError> {
    let load_cpu = || cpu::load(&Weights::open(model, weights)?, config.format, config.threads);
    match config.device {
        Device::Cpu => load_cpu(),
        Device::Cuda(index) => load_cuda(model, weights, index, config.format),
        // A GPU has no int8, so a request for int8 means the CPU.
        Device::Auto if config.format == NumberFormat::Int8 || !has_driver() => load_cpu(),
        Device::Auto => load_cuda(model, weights, 0, config.format).or_else(|cause| {
            tracing::info!(%cause, "no GPU is used; the encoder runs on the CPU");
            load_cpu()
        }),
    }
}

#[cfg(not(target_os = "linux"))]
fn has_driver() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn load_cuda(
    _: &ModelDir,
    _: &WeightsFile,
    index: usize,
    _: NumberFormat,
) -> Result<Box<dyn Backend>, LoadError> {
    let cause = "GPUs are used on Linux only".into();
    Err(LoadError::Device { device: Device::Cuda(index), cause })
}
