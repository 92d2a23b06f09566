//! Reading named tensors from the weights file, each held to a shape. What a backend makes of them is
//! its own affair.

use candle_core::safetensors::{Load, SliceSafetensors};
use candle_core::{DType, Device, Tensor};

use crate::load_error::LoadError;
use crate::model_dir::{ModelDir, WEIGHTS_FILE};

/// The open weights file.
pub(crate) struct Weights<'a> {
    model: &'a ModelDir,
    tensors: SliceSafetensors<'a>,
    /// Exports differ in whether names start with the class's own prefix.
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    /// `content` is the weights file of `model`.
    pub(crate) fn open(model: &'a ModelDir, content: &'a [u8]) -> Result<Self, LoadError> {
        let tensors = SliceSafetensors::new(content).map_err(|error| LoadError::Weights {
            path: model.file(WEIGHTS_FILE),
            cause: error.to_string(),
        })?;
        let prefixed = tensors.get("bert.embeddings.word_embeddings.weight").is_ok();
        Ok(Self { model, tensors, prefix: if prefixed { "bert." } else { "" } })
    }

    /// The model whose weights these are.
    pub(crate) fn model(&self) -> &'a ModelDir {
        self.model
    }

    /// The tensor `name` (without the class's prefix) as f32 on the CPU.
    ///
    /// # Errors
    /// When it is missing, or its shape is not `shape`.
    pub(crate) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, LoadError> {
        let name = format!("{}{name}", self.prefix);
        let view = self.tensors.get(&name).map_err(|_| LoadError::MissingTensor {
            path: self.model.file(WEIGHTS_FILE),
            tensor: name.clone(),
        })?;
        if view.shape() != shape {
            return Err(LoadError::TensorShape {
                path: self.model.file(WEIGHTS_FILE),
                tensor: name,
                expected: shape.to_vec(),
                found: view.shape().to_vec(),
            });
        }
        view.load(&Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(DType::F32))
            .map_err(|error| self.damaged(&error))
    }

    /// The error for weights that were found but cannot be used.
    pub(crate) fn damaged(&self, error: &candle_core::Error) -> LoadError {
        LoadError::Weights { path: self.model.file(WEIGHTS_FILE), cause: error.to_string() }
    }
}
