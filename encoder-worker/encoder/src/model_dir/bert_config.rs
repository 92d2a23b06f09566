//! Part of `config.json` that shapes a BERT network, and the check that it is supported. RoBERTa and XLM-R are BERT
//! with another tokenizer, one segment, and positions that begin later.

use std::path::Path;

use serde::Deserialize;

use super::key_error;
use crate::load_error::LoadError;

const BERT: &str = "bert";
const MODEL_TYPES: [&str; 3] = [BERT, "roberta", "xlm-roberta"];

/// Padding token of RoBERTa and XLM-R if the file does not give one.
const ROBERTA_PAD: i64 = 1;

/// Shape of a BERT network; the fields are named as in `config.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct BertConfig {
    /// Model type: `bert`, `roberta` or `xlm-roberta`.
    pub model_type: String,
    /// Rows of the token embedding.
    pub vocab_size: usize,
    /// Width of every token vector, and of the embedding.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of attention heads; divides `hidden_size`.
    pub num_attention_heads: usize,
    /// Width of the feed-forward layer.
    pub intermediate_size: usize,
    /// Activation function of the feed-forward layer.
    pub hidden_act: String,
    /// Rows of the position embedding; [`Self::first_position`] is the first one in use.
    pub max_position_embeddings: usize,
    /// Id of the padding token; if absent, the default of `model_type`.
    #[serde(default)]
    pub pad_token_id: Option<i64>,
    /// Rows of the segment embedding.
    pub type_vocab_size: usize,
    /// Term added to the variance in layer norms.
    pub layer_norm_eps: f64,
    /// Kind of position embedding; only `absolute`, the default, is supported.
    #[serde(default = "absolute")]
    pub position_embedding_type: String,
}

/// Activation function of the feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// GELU in its exact form, with the error function.
    Gelu,
    /// GELU in its `tanh` approximation.
    GeluTanh,
    /// Rectified linear unit.
    Relu,
}

impl BertConfig {
    /// Returns the function named by `hidden_act`, or `None` when it is unknown, which loading refuses.
    #[must_use]
    pub fn activation(&self) -> Option<Activation> {
        match self.hidden_act.as_str() {
            "gelu" => Some(Activation::Gelu),
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Some(Activation::GeluTanh),
            "relu" => Some(Activation::Relu),
            _ => None,
        }
    }

    /// Returns the width of one attention head.
    #[must_use]
    pub fn head_size(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }

    /// Returns the row of the position embedding for the first token of a text. RoBERTa counts on from the padding
    /// token's row and does not use the rows up to it.
    #[must_use]
    pub fn first_position(&self) -> usize {
        if self.model_type == BERT {
            return 0;
        }
        let pad = usize::try_from(self.pad_token_id.unwrap_or(ROBERTA_PAD));
        pad.unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Returns the length in tokens of the longest text that has a position for each.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.max_position_embeddings.saturating_sub(self.first_position())
    }

    pub(super) fn check(&self, path: &Path) -> Result<(), LoadError> {
        if !MODEL_TYPES.contains(&self.model_type.as_str()) {
            let supported = MODEL_TYPES.join(", ");
            let problem = format!("{:?} is not supported; there is {supported}", self.model_type);
            return Err(key_error(path, "model_type", problem));
        }
        if self.model_type != BERT && self.pad_token_id.is_some_and(|id| id < 0) {
            return Err(key_error(path, "pad_token_id", "must be at least 0"));
        }
        if self.position_embedding_type != "absolute" {
            let problem = format!("{:?} is not supported", self.position_embedding_type);
            return Err(key_error(path, "position_embedding_type", problem));
        }
        if self.activation().is_none() {
            let problem = format!("unknown activation {:?}", self.hidden_act);
            return Err(key_error(path, "hidden_act", problem));
        }
        if !(self.layer_norm_eps.is_finite() && self.layer_norm_eps > 0.0) {
            return Err(key_error(path, "layer_norm_eps", "must be above 0"));
        }
        self.check_sizes(path)
    }

    fn check_sizes(&self, path: &Path) -> Result<(), LoadError> {
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ];
        if let Some((key, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(key_error(path, key, "must be at least 1"));
        }
        if self.positions() == 0 {
            let problem = format!(
                "is {}, but positions of {} begin at pad_token_id + 1, {}",
                self.max_position_embeddings,
                self.model_type,
                self.first_position()
            );
            return Err(key_error(path, "max_position_embeddings", problem));
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let problem = format!("does not divide hidden_size, {}", self.hidden_size);
            return Err(key_error(path, "num_attention_heads", problem));
        }
        Ok(())
    }
}

fn absolute() -> String {
    "absolute".into()
}
