//! From the weights file, by the names and shapes that `config.json` implies, to the form that the
//! forward pass uses.

use candle_core::{DType, Device, Tensor};

use super::{Embeddings, Layer};
use crate::load_error::LoadError;
use crate::model_dir::{BertConfig, ModelDir};
use crate::weights::Weights;

/// The open weights file, and how a layer's parts are named in it.
pub(super) struct BertWeights<'a>(Weights<'a>);

impl<'a> BertWeights<'a> {
    pub(super) fn open(model: &'a ModelDir, content: &'a [u8]) -> Result<Self, LoadError> {
        Ok(Self(Weights::open(model, content)?))
    }

    pub(super) fn embeddings(&self) -> Result<Embeddings, LoadError> {
        let config = self.config();
        let hidden = config.hidden_size;
        let table = |name: &str, rows: usize| {
            self.0.tensor(&format!("embeddings.{name}_embeddings.weight"), &[rows, hidden])
        };
        let segments = table("token_type", config.type_vocab_size)?;
        let positions = table("position", config.max_position_embeddings)?;
        let no_bias = Tensor::zeros(hidden, DType::F32, &Device::Cpu)
            .map_err(|error| self.0.damaged(&error))?;
        Ok(Embeddings {
            words: table("word", config.vocab_size)?,
            positions: segments
                .narrow(0, 0, 1)
                .and_then(|first| positions.broadcast_add(&first))
                .map_err(|error| self.0.damaged(&error))?,
            norm: self.norm(no_bias, "embeddings.LayerNorm")?,
        })
    }

    pub(super) fn layer(&self, index: usize) -> Result<Layer, LoadError> {
        let (hidden, wide) = (self.config().hidden_size, self.config().intermediate_size);
        let at = |name: &str| format!("encoder.layer.{index}.{name}");
        let (qkv, qkv_bias) = self.qkv(&at("attention.self"))?;
        let (attention_out, bias) = self.linear(&at("attention.output.dense"), hidden, hidden)?;
        let attention_norm = self.norm(bias, &at("attention.output.LayerNorm"))?;
        let (up, up_bias) = self.linear(&at("intermediate.dense"), hidden, wide)?;
        let (down, bias) = self.linear(&at("output.dense"), wide, hidden)?;
        let down_norm = self.norm(bias, &at("output.LayerNorm"))?;
        Ok(Layer { qkv, qkv_bias, attention_out, attention_norm, up, up_bias, down, down_norm })
    }

    /// The three projections as one matrix and one bias. The scores' scale goes into the queries, so
    /// that nobody has to apply it later.
    fn qkv(&self, at: &str) -> Result<(Tensor, Tensor), LoadError> {
        let hidden = self.config().hidden_size;
        let scale = 1.0 / (self.config().head_size() as f64).sqrt();
        let (query, query_bias) = self.linear(&format!("{at}.query"), hidden, hidden)?;
        let (key, key_bias) = self.linear(&format!("{at}.key"), hidden, hidden)?;
        let (value, value_bias) = self.linear(&format!("{at}.value"), hidden, hidden)?;
        let join = || {
            let weight = Tensor::cat(&[(query * scale)?, key, value], 1)?;
            let bias = Tensor::cat(&[(query_bias * scale)?, key_bias, value_bias], 0)?;
            Ok((weight.contiguous()?, bias))
        };
        join().map_err(|error: candle_core::Error| self.0.damaged(&error))
    }

    /// A linear layer's matrix, turned to `[inputs, outputs]`, and its bias.
    fn linear(
        &self,
        at: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<(Tensor, Tensor), LoadError> {
        let weight = self.0.tensor(&format!("{at}.weight"), &[outputs, inputs])?;
        let bias = self.0.tensor(&format!("{at}.bias"), &[outputs])?;
        let turned = weight.t().and_then(|weight| weight.contiguous());
        Ok((turned.map_err(|error| self.0.damaged(&error))?, bias))
    }

    /// `bias` and a layer norm's parameters as three rows.
    fn norm(&self, bias: Tensor, at: &str) -> Result<Tensor, LoadError> {
        let hidden = self.config().hidden_size;
        let gamma = self.0.tensor(&format!("{at}.weight"), &[hidden])?;
        let beta = self.0.tensor(&format!("{at}.bias"), &[hidden])?;
        Tensor::stack(&[bias, gamma, beta], 0).map_err(|error| self.0.damaged(&error))
    }

    fn config(&self) -> &BertConfig {
        &self.0.model().bert
    }
}
