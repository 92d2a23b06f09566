//! BERT in f32 on the CPU, on candle: four matrix products a layer from candle, our own operations
//! between them, texts packed without padding.

mod attention;
mod kernels;
mod ops;
mod pool;
mod product;
mod storage;
#[cfg(test)]
mod tests;
mod weights;

use std::num::NonZeroUsize;

use candle_core::{Device, Tensor};
use pulp::Arch;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::backend::{Backend, BackendError, Batch};
use crate::load_error::LoadError;
use crate::model_dir::{Activation, ModelDir, Pooling};
use attention::Attention;
use ops::{AddNorm, BiasActivation};
use weights::BertWeights;

/// The backend's name.
pub(crate) const CPU_F32: &str = "cpu-f32";

/// A loaded model with the threads it runs on.
pub(crate) struct CandleBert {
    embeddings: Embeddings,
    layers: Vec<Layer>,
    heads: usize,
    activation: Activation,
    epsilon: f32,
    pooling: Pooling,
    normalise: bool,
    arch: Arch,
    threads: ThreadPool,
}

/// The input tables. The position table has the segment's row added already: all is segment 0.
struct Embeddings {
    words: Tensor,
    positions: Tensor,
    /// Zero bias, then the layer norm's weight and bias.
    norm: Tensor,
}

/// One layer. Matrices are `[inputs, outputs]`, which is how the product wants them.
struct Layer {
    /// Queries (scaled), keys and values side by side.
    qkv: Tensor,
    qkv_bias: Tensor,
    attention_out: Tensor,
    /// Output bias, then the layer norm's weight and bias.
    attention_norm: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    down_norm: Tensor,
}

impl CandleBert {
    /// Reads the weights; `threads` of `None` means one per core.
    pub(crate) fn load(
        model: &ModelDir,
        weights: &[u8],
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, LoadError> {
        let weights = BertWeights::open(model, weights)?;
        let layers = (0..model.bert.num_hidden_layers).map(|index| weights.layer(index));
        let threads = ThreadPoolBuilder::new()
            .num_threads(threads.map_or(0, NonZeroUsize::get))
            .thread_name(|index| format!("encoder-{index}"))
            .build()
            .map_err(|error| LoadError::Threads(error.to_string()))?;
        Ok(Self {
            embeddings: weights.embeddings()?,
            layers: layers.collect::<Result<_, _>>()?,
            heads: model.bert.num_attention_heads,
            // An unknown activation was refused when the directory was opened.
            activation: model.bert.activation().unwrap_or(Activation::Gelu),
            epsilon: model.bert.layer_norm_eps as f32,
            pooling: model.pooling,
            normalise: model.normalise,
            arch: Arch::new(),
            threads,
        })
    }

    fn run(&self, batch: &Batch) -> candle_core::Result<Vec<Vec<f32>>> {
        let mut hidden = self.embed_tokens(batch)?;
        for layer in &self.layers {
            hidden = self.run_layer(layer, &hidden, batch.bounds())?;
        }
        let hidden = hidden.flatten_all()?.to_vec1::<f32>()?;
        Ok(pool::pool(&hidden, batch.bounds(), self.pooling, self.normalise))
    }

    fn embed_tokens(&self, batch: &Batch) -> candle_core::Result<Tensor> {
        let positions: Vec<u32> =
            batch.bounds().windows(2).flat_map(|text| 0..(text[1] - text[0]) as u32).collect();
        let ids = Tensor::new(batch.token_ids(), &Device::Cpu)?;
        let positions = Tensor::new(positions, &Device::Cpu)?;
        let words = self.embeddings.words.index_select(&ids, 0)?;
        let positions = self.embeddings.positions.index_select(&positions, 0)?;
        words.inplace_op3(&positions, &self.embeddings.norm, &self.add_norm())?;
        Ok(words)
    }

    fn run_layer(
        &self,
        layer: &Layer,
        input: &Tensor,
        bounds: &[usize],
    ) -> candle_core::Result<Tensor> {
        let attention = Attention { arch: self.arch, heads: self.heads, bounds };
        let activation = BiasActivation { arch: self.arch, activation: self.activation };
        let context = input.matmul(&layer.qkv)?.apply_op2_no_bwd(&layer.qkv_bias, &attention)?;
        let attended = context.matmul(&layer.attention_out)?;
        attended.inplace_op3(input, &layer.attention_norm, &self.add_norm())?;
        let wide = attended.matmul(&layer.up)?;
        wide.inplace_op2(&layer.up_bias, &activation)?;
        let output = wide.matmul(&layer.down)?;
        output.inplace_op3(&attended, &layer.down_norm, &self.add_norm())?;
        Ok(output)
    }

    fn add_norm(&self) -> AddNorm {
        AddNorm { arch: self.arch, epsilon: self.epsilon }
    }
}

impl Backend for CandleBert {
    fn name(&self) -> &str {
        CPU_F32
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        let this = &*self;
        this.threads.install(|| this.run(batch)).map_err(|error| BackendError(error.to_string()))
    }
}
