//! Sentence-transformers model directory. This module reads and checks its small files, so that all later code works on
//! valid values. It only locates the weights.

mod bert_config;
mod modules;
mod prompts;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

pub use bert_config::{Activation, BertConfig};
pub use modules::Pooling;
pub use prompts::Prompts;

use crate::adapter::AdapterChoice;
use crate::load_error::LoadError;
use crate::pages::FileContent;
use crate::weights::WeightsFile;

pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(crate) const WEIGHTS_FILE: &str = "model.safetensors";
pub(crate) const CONFIG_FILE: &str = "config.json";
const LIMITS_FILE: &str = "sentence_bert_config.json";

/// Version of the code's effect on embeddings; changes when the same files would give other embeddings.
const FINGERPRINT_VERSION: &str = "toolgate-encoder/3";

/// Model directory whose configuration has been read and is supported.
#[derive(Debug, Clone)]
pub struct ModelDir {
    path: PathBuf,
    /// Shape of the network.
    pub bert: BertConfig,
    /// Method that combines token vectors into one.
    pub pooling: Pooling,
    /// True if the result is scaled to length 1.
    pub normalise: bool,
    /// Longest input in tokens, special ones included.
    pub max_tokens: usize,
    /// True if texts are lower-cased before the tokenizer sees them.
    pub lowercase: bool,
    /// Files read so far, in a fixed order.
    small_files: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Default, Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

impl ModelDir {
    /// Reads and checks everything except the content of the tokenizer and the weights.
    ///
    /// # Errors
    /// Names the file and the key that is missing, malformed or unsupported.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let mut files = SmallFiles::new(path);
        let bert: BertConfig = files.parse(CONFIG_FILE)?;
        bert.check(&path.join(CONFIG_FILE))?;
        let steps = modules::read(&mut files, bert.hidden_size)?;
        let limits: Limits = files.parse_if_present(LIMITS_FILE)?.unwrap_or_default();
        files.read(TOKENIZER_FILE)?;
        let max_tokens = limits.max_seq_length.unwrap_or(usize::MAX).min(bert.positions());
        if max_tokens == 0 {
            return Err(key_error(&path.join(LIMITS_FILE), "max_seq_length", "must be at least 1"));
        }
        Ok(Self {
            path: path.to_path_buf(),
            bert,
            pooling: steps.pooling,
            normalise: steps.normalise,
            max_tokens,
            lowercase: limits.do_lower_case,
            small_files: files.contents,
        })
    }

    /// Returns the name of the directory, which is also the model's name.
    #[must_use]
    pub fn name(&self) -> String {
        let absolute = self.path.canonicalize();
        let path = absolute.as_deref().unwrap_or(&self.path);
        path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into())
    }

    /// Returns the error for a value of `config.json` that cannot be used.
    pub(crate) fn config_error(&self, key: &str, problem: String) -> LoadError {
        key_error(&self.file(CONFIG_FILE), key, problem)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn tokenizer_json(&self) -> &[u8] {
        self.small_files
            .iter()
            .find(|(name, _)| name == TOKENIZER_FILE)
            .map_or(&[], |(_, content)| content)
    }

    /// Reads the weights file, and the adapter that `choice` selects for it.
    pub(crate) fn read_weights(&self, choice: &AdapterChoice) -> Result<WeightsFile, LoadError> {
        let path = self.file(WEIGHTS_FILE);
        let content = FileContent::read(&path);
        WeightsFile::new(content.map_err(|source| LoadError::Read { path, source })?, choice)
    }

    /// Returns the SHA-256 over the model's files and the settings derived from them, in hex. It excludes device and
    /// number format: every backend stays within a small cosine of f32, so backends are interchangeable.
    pub(crate) fn fingerprint(&self, weights: &WeightsFile) -> String {
        let mut hash = Sha256::new();
        hash.update(format!(
            "{FINGERPRINT_VERSION}\0{:?}\0normalise={}\0max_tokens={}\0",
            self.pooling, self.normalise, self.max_tokens
        ));
        for (name, content) in &self.small_files {
            hash.update(format!("{name}\0{}\0", content.len()));
            hash.update(content);
        }
        hash.update(weights.identity());
        hex::encode(hash.finalize())
    }
}

/// Small files of the directory, kept as read for the fingerprint.
struct SmallFiles<'a> {
    directory: &'a Path,
    contents: Vec<(String, Vec<u8>)>,
}

impl<'a> SmallFiles<'a> {
    fn new(directory: &'a Path) -> Self {
        Self { directory, contents: Vec::new() }
    }

    fn read(&mut self, name: &str) -> Result<&[u8], LoadError> {
        let content = read_file(&self.directory.join(name))?;
        self.contents.push((name.to_owned(), content));
        Ok(self.contents.last().map_or(&[], |(_, content)| content))
    }

    fn parse<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LoadError> {
        let path = self.directory.join(name);
        serde_json::from_slice(self.read(name)?).map_err(|source| LoadError::Json { path, source })
    }

    fn parse_if_present<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, LoadError> {
        if self.directory.join(name).exists() {
            return self.parse(name).map(Some);
        }
        Ok(None)
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    fs::read(path).map_err(|source| LoadError::Read { path: path.to_path_buf(), source })
}

fn key_error(path: &Path, key: &str, problem: impl Into<String>) -> LoadError {
    LoadError::Key { path: path.to_path_buf(), key: key.into(), problem: problem.into() }
}
