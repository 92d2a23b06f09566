//! Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685): the changes that fine-tuning made to a model's linear
//! layers, in a hundredth of the model's size. An adapter is merged into the weights when they are read, so it works
//! with every backend and costs no time in a call.

mod choice;
mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use choice::AdapterChoice;

use crate::load_error::LoadError;
use file::{Factors, Header};

/// Adapters that come with the program, each for one model.
const SHIPPED: &[(&str, &[u8])] =
    &[("tools-v1", include_bytes!("../../adapters/tools-v1.safetensors"))];

/// Adapter that fits a model.
pub(crate) struct Adapter {
    name: String,
    /// Path for messages.
    path: PathBuf,
    sha256: String,
    /// Factor applied to the product of `b` and `a`.
    scale: f64,
    /// Factors by the module that they change, such as `encoder.layer.0.output.dense`.
    factors: BTreeMap<String, Factors>,
}

impl Adapter {
    /// Returns the adapter that `choice` selects for the weights with this SHA-256.
    ///
    /// # Errors
    /// The chosen file can't be read, is no adapter, or was made for other weights.
    pub(crate) fn find(choice: &AdapterChoice, weights: &str) -> Result<Option<Self>, LoadError> {
        match choice {
            AdapterChoice::None => Ok(None),
            AdapterChoice::Auto => Self::shipped_for(weights),
            AdapterChoice::File(path) => {
                let content = fs::read(path);
                let content =
                    content.map_err(|source| LoadError::Read { path: path.clone(), source })?;
                Self::chosen(path, &content, weights).map(Some)
            }
        }
    }

    fn shipped_for(weights: &str) -> Result<Option<Self>, LoadError> {
        for (name, content) in SHIPPED {
            let path = Path::new(name);
            let header = Header::read(content).map_err(|problem| wrong(path, problem))?;
            if header.base_sha256 == weights {
                return Self::read(path, content, &header).map(Some);
            }
        }
        Ok(None)
    }

    fn chosen(path: &Path, content: &[u8], weights: &str) -> Result<Self, LoadError> {
        let header = Header::read(content).map_err(|problem| wrong(path, problem))?;
        if header.base_sha256 != weights {
            let problem = format!(
                "it was made for weights of SHA-256 {:?}, and the model's are of {weights}",
                header.base_sha256
            );
            return Err(wrong(path, problem));
        }
        Self::read(path, content, &header)
    }

    fn read(path: &Path, content: &[u8], header: &Header) -> Result<Self, LoadError> {
        let factors =
            file::factors(content, header.rank).map_err(|problem| wrong(path, problem))?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        Ok(Self {
            name,
            path: path.to_path_buf(),
            sha256: hex::encode(Sha256::digest(content)),
            scale: header.alpha / header.rank as f64,
            factors,
        })
    }

    /// Returns the file's name without its extension.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the SHA-256 of the file in hex.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Fails if the adapter changes a module that the model does not have, because its intended model is then unknown.
    pub(crate) fn check(&self, has_module: impl Fn(&str) -> bool) -> Result<(), LoadError> {
        match self.factors.keys().find(|module| !has_module(module)) {
            None => Ok(()),
            Some(module) => Err(wrong(&self.path, format!("the model has no {module}.weight"))),
        }
    }

    /// Returns true if the adapter changes the weight `{module}.weight`.
    pub(crate) fn changes(&self, module: &str) -> bool {
        self.factors.contains_key(module)
    }

    /// Adds the adapter's part `scale * B A` to the values of the weight `{module}.weight`, which has the shape outputs x
    /// inputs.
    ///
    /// # Errors
    /// The factors don't have its shape.
    pub(crate) fn merge_into(
        &self,
        module: &str,
        values: &mut [f32],
        shape: &[usize],
    ) -> Result<(), LoadError> {
        let Some(Factors { a, b }) = self.factors.get(module) else {
            return Ok(());
        };
        let unfit = || {
            let a = a.dims();
            let b = b.dims();
            let problem = format!("{module}: lora_A {a:?} and lora_B {b:?} don't fit {shape:?}");
            wrong(&self.path, problem)
        };
        let product = b.matmul(a).map_err(|_| unfit())?;
        if product.dims() != shape {
            return Err(unfit());
        }
        // Not by `Tensor::add`, whose threads spin for each other: that costs more than the sum.
        let product = product.flatten_all().and_then(|flat| flat.to_vec1::<f32>());
        let scale = self.scale as f32;
        let parts = product.map_err(|_| unfit())?;
        values.iter_mut().zip(parts).for_each(|(value, part)| *value += part * scale);
        Ok(())
    }
}

fn wrong(path: &Path, problem: String) -> LoadError {
    LoadError::Adapter { path: path.to_path_buf(), problem }
}
