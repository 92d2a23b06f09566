//! A sentence-transformers model directory: reads and checks its small files, so that everything
//! after this works on values that are known to be right. The weights are only located here.

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
use crate::weights::WeightsFile;

pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(crate) const WEIGHTS_FILE: &str = "model.safetensors";
pub(crate) const CONFIG_FILE: &str = "config.json";
const LIMITS_FILE: &str = "sentence_bert_config.json";

/// Changes when the same files would give other embeddings because the code changed.
const FINGERPRINT_VERSION: &str = "toolgate-encoder/3";

/// A model directory whose configuration has been read and found supported.
#[derive(Debug, Clone)]
pub struct ModelDir {
    path: PathBuf,
    /// The network's shape.
    pub bert: BertConfig,
    /// How token vectors become one.
    pub pooling: Pooling,
    /// Whether the result is scaled to length 1.
    pub normalise: bool,
    /// Longest input in tokens, special ones included.
    pub max_tokens: usize,
    /// Whether texts are lower-cased before the tokenizer sees them.
    pub lowercase: bool,
    /// The files read so far, in a fixed order.
    small_files: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Default, Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

impl ModelDir {
    /// Reads and checks everything but the tokenizer's and the weights' content.
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

    /// The directory's own name, which is the model's.
    #[must_use]
    pub fn name(&self) -> String {
        let absolute = self.path.canonicalize();
        let path = absolute.as_deref().unwrap_or(&self.path);
        path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into())
    }

    /// The error for a value of `config.json` that cannot be used.
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

    /// The weights file, and the adapter that `choice` means for it.
    pub(crate) fn read_weights(&self, choice: &AdapterChoice) -> Result<WeightsFile, LoadError> {
        WeightsFile::new(read_file(&self.file(WEIGHTS_FILE))?, choice)
    }

    /// Hex SHA-256 over the model: its files, and what was made of them. Not over device and number
    /// format: every backend stays within a small cosine of f32, so that one may stand in for another.
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

/// The directory's small files, kept as read for the fingerprint.
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
