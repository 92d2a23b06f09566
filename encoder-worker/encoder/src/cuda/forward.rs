//! Forward pass as a list of steps. A GPU executes them; a test does so in plain loops.

#[cfg(test)]
mod tests;

use super::model::{Embeddings, Layer, Model};

/// Memory for a batch's intermediate results, one row per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// `[tokens, hidden]`: a layer's input and output.
    Hidden,
    /// `[tokens, hidden]`: the result of attention.
    Context,
    /// `[tokens, hidden]`: between attention and the feed-forward layer.
    Middle,
    /// `[tokens, 3 * hidden]`: queries, keys and values.
    Qkv,
    /// `[tokens, wide]`: inside the feed-forward layer.
    Wide,
}

impl Slot {
    /// Every slot, in the order of its discriminants.
    pub(super) const ALL: [Self; 5] =
        [Self::Hidden, Self::Context, Self::Middle, Self::Qkv, Self::Wide];

    /// Returns the number of values per token.
    pub(super) fn width(self, hidden: usize, wide: usize) -> usize {
        match self {
            Self::Hidden | Self::Context | Self::Middle => hidden,
            Self::Qkv => 3 * hidden,
            Self::Wide => wide,
        }
    }
}

/// Steps that a device executes for its current batch; each method is one launch.
pub(super) trait Steps {
    type Matrix;
    type Vector;
    type Error;

    /// Computes `Hidden` = norm(words + positions).
    fn embed(
        &mut self,
        embeddings: &Embeddings<Self::Matrix, Self::Vector>,
    ) -> Result<(), Self::Error>;

    /// Computes `into` = `from` times `matrix`, which is `[outputs, inputs]`.
    fn multiply(
        &mut self,
        from: Slot,
        matrix: &Self::Matrix,
        into: Slot,
    ) -> Result<(), Self::Error>;

    /// Computes `Context` = softmax over each text of (`Qkv` + `bias`), head by head.
    fn attend(&mut self, bias: &Self::Vector) -> Result<(), Self::Error>;

    /// Computes `rows` = norm(`rows` + bias + `residual`); `bias_norm` is bias, weight, bias of the norm.
    fn add_norm(
        &mut self,
        rows: Slot,
        residual: Slot,
        bias_norm: &Self::Vector,
    ) -> Result<(), Self::Error>;

    /// Computes `Wide` = activation(`Wide` + `bias`).
    fn activate(&mut self, bias: &Self::Vector) -> Result<(), Self::Error>;

    /// Computes the result = `Hidden`, pooled by text, normalised when the model requires it.
    fn pool(&mut self) -> Result<(), Self::Error>;
}

/// Returns the number of launches of a batch, which does not depend on its size: 50 with six layers. Half of them, less
/// one, are matrix products. One upload comes before them and one download after them.
pub(super) const fn launches(layers: usize) -> usize {
    2 + 8 * layers
}

/// Runs `model` on the batch that `steps` was given.
pub(super) fn forward<S: Steps>(
    model: &Model<S::Matrix, S::Vector>,
    steps: &mut S,
) -> Result<(), S::Error> {
    steps.embed(&model.embeddings)?;
    for layer in &model.layers {
        run_layer(layer, steps)?;
    }
    steps.pool()
}

fn run_layer<S: Steps>(layer: &Layer<S::Matrix, S::Vector>, steps: &mut S) -> Result<(), S::Error> {
    steps.multiply(Slot::Hidden, &layer.qkv, Slot::Qkv)?;
    steps.attend(&layer.qkv_bias)?;
    steps.multiply(Slot::Context, &layer.attention_out, Slot::Middle)?;
    steps.add_norm(Slot::Middle, Slot::Hidden, &layer.attention_norm)?;
    steps.multiply(Slot::Middle, &layer.up, Slot::Wide)?;
    steps.activate(&layer.up_bias)?;
    steps.multiply(Slot::Wide, &layer.down, Slot::Hidden)?;
    steps.add_norm(Slot::Hidden, Slot::Middle, &layer.down_norm)
}
