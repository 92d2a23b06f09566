//! Reader of named tensors from the weights file, which checks each shape. Backends convert the tensors themselves,
//! except for the positions, which are read in one way only.

use candle_core::safetensors::{Load, SliceSafetensors};
use candle_core::{DType, Device};
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use sha2::{Digest, Sha256};

use crate::adapter::{Adapter, AdapterChoice};
use crate::load_error::LoadError;
use crate::model_dir::{ModelDir, WEIGHTS_FILE};
use crate::pages::{FileContent, room_on_large_pages};

const WORDS: &str = "embeddings.word_embeddings.weight";

/// Possible prefixes of tensor names: some exports include the prefix of the class.
const PREFIXES: [&str; 3] = ["", "bert.", "roberta."];

const WEIGHT: &str = ".weight";

/// Content of the weights file, and the adapter to merge into it.
pub(crate) struct WeightsFile {
    content: FileContent,
    /// SHA-256 of the content in hex.
    sha256: String,
    adapter: Option<Adapter>,
}

impl WeightsFile {
    /// Finds the adapter that `choice` selects for this content.
    pub(crate) fn new(content: FileContent, choice: &AdapterChoice) -> Result<Self, LoadError> {
        let sha256 = hex::encode(Sha256::digest(&*content));
        let adapter = Adapter::find(choice, &sha256)?;
        Ok(Self { content, sha256, adapter })
    }

    /// Returns a string that differs if the weights or the adapter do.
    pub(crate) fn identity(&self) -> String {
        let adapter = self.adapter.as_ref().map_or("", Adapter::sha256);
        format!("weights={}\0adapter={adapter}\0", self.sha256)
    }

    /// Returns the name of `model` with these weights.
    pub(crate) fn name_of(&self, model: &ModelDir) -> String {
        match &self.adapter {
            None => model.name(),
            Some(adapter) => format!("{}+{}", model.name(), adapter.name()),
        }
    }
}

/// Parsed weights file.
pub(crate) struct Weights<'a> {
    model: &'a ModelDir,
    adapter: Option<&'a Adapter>,
    tensors: SliceSafetensors<'a>,
    /// Prefix of this file's tensors, one of [`PREFIXES`].
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    /// Opens `file`, the weights file of `model`.
    pub(crate) fn open(model: &'a ModelDir, file: &'a WeightsFile) -> Result<Self, LoadError> {
        let tensors = SliceSafetensors::new(&file.content).map_err(|error| LoadError::Weights {
            path: model.file(WEIGHTS_FILE),
            cause: error.to_string(),
        })?;
        let has_words = |prefix: &&str| tensors.get(&format!("{prefix}{WORDS}")).is_ok();
        let prefix = PREFIXES.into_iter().find(has_words).unwrap_or_default();
        let adapter = file.adapter.as_ref();
        if let Some(adapter) = adapter {
            adapter.check(|module| tensors.get(&format!("{prefix}{module}{WEIGHT}")).is_ok())?;
        }
        Ok(Self { model, adapter, tensors, prefix })
    }

    /// Returns the model that these weights belong to.
    pub(crate) fn model(&self) -> &'a ModelDir {
        self.model
    }

    /// Returns the values of the tensor `name` (without the prefix of the class), row by row, with the adapter merged into
    /// them.
    ///
    /// # Errors
    /// It is missing, or its shape is not `shape`.
    pub(crate) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let values = values(&self.view(name, shape)?, |value| value);
        let mut values = values.map_err(|error| self.damaged(&error))?;
        let module = name.strip_suffix(WEIGHT);
        if let (Some(adapter), Some(module)) = (self.adapter, module) {
            adapter.merge_into(module, &mut values, shape)?;
        }
        Ok(values)
    }

    /// Returns the tensor `name` (without the prefix of the class) if its shape is `shape`.
    fn view(&self, name: &str, shape: &[usize]) -> Result<TensorView<'_>, LoadError> {
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
        Ok(view)
    }

    /// Returns the token embedding, one row per token, with each value converted.
    pub(crate) fn words<T>(&self, convert: impl Fn(f32) -> T) -> Result<Vec<T>, LoadError> {
        let bert = &self.model.bert;
        let shape = [bert.vocab_size, bert.hidden_size];
        let module = WORDS.strip_suffix(WEIGHT).unwrap_or(WORDS);
        if self.adapter.is_some_and(|adapter| adapter.changes(module)) {
            return Ok(self.values(WORDS, &shape)?.into_iter().map(convert).collect());
        }
        values(&self.view(WORDS, &shape)?, convert).map_err(|error| self.damaged(&error))
    }

    /// Returns the position embedding from the row of a text's first token on. The segment's row is already added,
    /// because every text is segment 0. A padding token spelt out in a text (`<pad>`) gets a position here like any
    /// other; RoBERTa's own code gives it none.
    pub(crate) fn positions(&self) -> Result<Vec<f32>, LoadError> {
        let bert = &self.model.bert;
        let table = |name: &str, rows: usize| {
            self.values(&format!("embeddings.{name}_embeddings.weight"), &[rows, bert.hidden_size])
        };
        let segments = table("token_type", bert.type_vocab_size)?;
        let mut positions = table("position", bert.max_position_embeddings)?;
        positions.drain(..bert.first_position() * bert.hidden_size);
        for row in positions.chunks_exact_mut(bert.hidden_size) {
            row.iter_mut().zip(&segments).for_each(|(x, segment)| *x += segment);
        }
        Ok(positions)
    }

    /// Returns the error for weights that were found but cannot be used.
    fn damaged(&self, error: &candle_core::Error) -> LoadError {
        LoadError::Weights { path: self.model.file(WEIGHTS_FILE), cause: error.to_string() }
    }
}

/// Returns a tensor's values, each converted. The formats that weights have are read without a copy in between.
fn values<T>(
    view: &TensorView<'_>,
    convert: impl Fn(f32) -> T,
) -> Result<Vec<T>, candle_core::Error> {
    let mut values = room_on_large_pages(view.shape().iter().product());
    let singles = || view.data().as_chunks().0.iter();
    let halves = || view.data().as_chunks().0.iter();
    match view.dtype() {
        Dtype::F32 => values.extend(singles().map(|x| convert(f32::from_le_bytes(*x)))),
        Dtype::F16 => values.extend(halves().map(|x| convert(f16::from_le_bytes(*x).to_f32()))),
        Dtype::BF16 => values.extend(halves().map(|x| convert(bf16::from_le_bytes(*x).to_f32()))),
        _ => {
            let tensor = view.load(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?;
            values.extend(tensor.to_vec1()?.into_iter().map(convert));
        }
    }
    Ok(values)
}
