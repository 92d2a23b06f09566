//! From text to token ids, with truncation at the model's limit and never silently.

use thiserror::Error;
use tokenizers::{Tokenizer, TruncationParams};

use crate::load_error::LoadError;
use crate::model_dir::{ModelDir, TOKENIZER_FILE};

/// One text as the model will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) ids: Vec<u32>,
    pub(crate) truncated: bool,
}

/// A text that the tokenizer could not handle.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct TokenizeError(String);

/// The model's tokenizer, set to the model's limit.
pub(crate) struct TextTokenizer {
    tokenizer: Tokenizer,
    lowercase: bool,
}

impl TextTokenizer {
    pub(crate) fn load(model: &ModelDir) -> Result<Self, LoadError> {
        let refuse =
            |cause: String| LoadError::Tokenizer { path: model.file(TOKENIZER_FILE), cause };
        let mut tokenizer = Tokenizer::from_bytes(model.tokenizer_json())
            .map_err(|error| refuse(error.to_string()))?;
        let ids = tokenizer.get_vocab_size(true);
        if ids > model.bert.vocab_size {
            let rows = model.bert.vocab_size;
            return Err(refuse(format!("has {ids} tokens, but config.json has vocab_size {rows}")));
        }
        let special = special_tokens(&tokenizer).map_err(|error| refuse(error.to_string()))?;
        if special >= model.max_tokens {
            return Err(refuse(format!(
                "adds {special} special tokens, which leaves none of the model's limit of {}",
                model.max_tokens
            )));
        }
        // The file's own padding and limit are those of whoever exported it.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: model.max_tokens,
                ..TruncationParams::default()
            }))
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self { tokenizer, lowercase: model.lowercase })
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Tokens, TokenizeError> {
        let encoding = if self.lowercase {
            self.tokenizer.encode_fast(text.to_lowercase(), true)
        } else {
            self.tokenizer.encode_fast(text, true)
        };
        let encoding = encoding.map_err(|error| TokenizeError(error.to_string()))?;
        if encoding.get_ids().is_empty() {
            return Err(TokenizeError("the text has no tokens".into()));
        }
        Ok(Tokens {
            truncated: !encoding.get_overflowing().is_empty(),
            ids: encoding.get_ids().to_vec(),
        })
    }
}

/// Tokens that are added to every text.
fn special_tokens(tokenizer: &Tokenizer) -> tokenizers::Result<usize> {
    let mut bare = tokenizer.clone();
    bare.with_padding(None);
    bare.with_truncation(None)?;
    Ok(bare.encode_fast("", true)?.len())
}
