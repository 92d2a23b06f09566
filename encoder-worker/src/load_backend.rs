//! From a model directory and a wish to a loaded model: the only place that knows all backends.

use crate::backend::Backend;
use crate::candle_bert::CandleBert;
use crate::device::{Device, NumberFormat};
use crate::encoder::EncoderConfig;
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;

/// Loads `weights` onto the device that `config` asks for.
pub(crate) fn load_backend(
    model: &ModelDir,
    weights: &[u8],
    config: &EncoderConfig,
) -> Result<Box<dyn Backend>, LoadError> {
    match config.device {
        Device::Auto | Device::Cpu => load_cpu(model, weights, config),
        device @ Device::Cuda(_) => Err(LoadError::Device {
            device,
            cause: "this program was built without its `cuda` feature".into(),
        }),
    }
}

fn load_cpu(
    model: &ModelDir,
    weights: &[u8],
    config: &EncoderConfig,
) -> Result<Box<dyn Backend>, LoadError> {
    match config.format {
        NumberFormat::Auto | NumberFormat::F32 => {
            Ok(Box::new(CandleBert::load(model, weights, config.threads)?))
        }
        format => Err(LoadError::Format { format, device: Device::Cpu, available: "f32" }),
    }
}
