//! From a model directory and a wish to a loaded model: the only place that knows all backends.

use crate::backend::Backend;
use crate::cpu;
use crate::device::Device;
use crate::encoder::EncoderConfig;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::weights::Weights;

/// Loads `weights` onto the device that `config` asks for.
pub(crate) fn load_backend(
    model: &ModelDir,
    weights: &[u8],
    config: &EncoderConfig,
) -> Result<Box<dyn Backend>, LoadError> {
    let weights = Weights::open(model, weights)?;
    match config.device {
        Device::Auto | Device::Cpu => cpu::load(&weights, config.format, config.threads),
        device @ Device::Cuda(_) => Err(LoadError::Device {
            device,
            cause: "this program was built without its `cuda` feature".into(),
        }),
    }
}
