//! Weights of a BERT network in the form that the forward pass reads, and their conversion from the weights file.

use pulp::Arch;

use super::balance::{Reach, balance, measure};
use super::bf16;
use super::elementwise::Norm;
use super::kernel::{Format, INPUT_MULTIPLE, Kernel, NO_GROUPS, PANEL};
use super::linear::{Dense, Linear, Packed};
use crate::device::NumberFormat;
use crate::load_error::LoadError;
use crate::model_dir::Activation;
use crate::weights::Weights;

/// All weights, packed for one kernel.
pub(super) struct Model<K: Kernel> {
    pub(super) shape: Shape,
    pub(super) embeddings: Embeddings,
    pub(super) layers: Vec<Layer>,
    /// Packed weights of the layers.
    pub(super) packed: Packed<K>,
}

/// Widths, in values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Width of an embedding.
    pub(super) hidden: usize,
    pub(super) heads: usize,
    /// Width of a head, padded so that a panel holds a whole number of heads.
    pub(super) head: usize,
}

impl Shape {
    /// Returns the distance between two rows of activations, which is the padded input width of a linear layer.
    pub(super) fn stride(&self) -> usize {
        self.hidden.next_multiple_of(INPUT_MULTIPLE)
    }

    /// Returns the number of panels that hold all heads' queries; as many again hold the keys, and the values.
    pub(super) fn head_panels(&self) -> usize {
        (self.heads * self.head).div_ceil(PANEL)
    }
}

/// Input tables. The segment's row is already added to the position table, because every text is segment 0.
pub(super) struct Embeddings {
    words: Table,
    positions: Vec<f32>,
    pub(super) norm: Norm,
}

/// Token embeddings, the largest table by far. In bf16 it is half as large, and the lost precision would be lost in the
/// first rounding of activations anyway.
enum Table {
    F32(Vec<f32>),
    Bf16(Vec<u16>),
}

/// Weights of one layer.
pub(super) struct Layer {
    /// Queries (scaled), keys and values side by side. Heads are padded, and each part begins at a panel's start.
    pub(super) qkv: Linear,
    pub(super) attention_out: Linear,
    pub(super) attention_norm: Norm,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) down_norm: Norm,
}

impl Embeddings {
    /// Returns the number of tokens and the number of positions that have a row.
    pub(super) fn counts(&self) -> (usize, usize) {
        let width = self.norm.gamma.len();
        let words = match &self.words {
            Table::F32(words) => words.len(),
            Table::Bf16(words) => words.len(),
        };
        (words / width, self.positions.len() / width)
    }

    /// Adds up a token's rows into `out`.
    #[inline(always)]
    pub(super) fn add_up(&self, token: u32, position: usize, out: &mut [f32]) {
        let width = out.len();
        let token = token as usize;
        let position = &self.positions[position * width..][..width];
        match &self.words {
            Table::F32(words) => {
                let row = &words[token * width..][..width];
                out.iter_mut().zip(row).zip(position).for_each(|((x, a), b)| *x = a + b);
            }
            Table::Bf16(words) => {
                let row = &words[token * width..][..width];
                let row = row.iter().map(|&x| bf16::to_f32(x));
                out.iter_mut().zip(row).zip(position).for_each(|((x, a), b)| *x = a + b);
            }
        }
    }
}

impl<K: Kernel> Model<K> {
    pub(super) fn read(weights: &Weights<'_>, arch: Arch) -> Result<Self, LoadError> {
        let reader = Reader { weights, shape: shape(weights)? };
        let shape = reader.shape;
        let mut embeddings = reader.embeddings(K::Format::NAME)?;
        let mut reaches = Vec::new();
        if K::GROUP != NO_GROUPS {
            let (layers, packed) = reader.layers(&mut embeddings.norm, &[])?;
            let plain = Model { shape, embeddings, layers, packed };
            let activation = weights.model().bert.activation().unwrap_or(Activation::Gelu);
            (reaches, embeddings) = measure(plain, arch, activation);
        }
        let (layers, packed) = reader.layers(&mut embeddings.norm, &reaches)?;
        Ok(Self { shape, embeddings, layers, packed })
    }
}

fn shape(weights: &Weights<'_>) -> Result<Shape, LoadError> {
    let bert = &weights.model().bert;
    let head = bert.head_size().next_power_of_two().max(INPUT_MULTIPLE);
    if head > PANEL {
        let problem = format!("{} values a head; at most {PANEL} are supported", bert.head_size());
        return Err(weights.model().config_error("num_attention_heads", problem));
    }
    Ok(Shape { hidden: bert.hidden_size, heads: bert.num_attention_heads, head })
}

/// Reader of tensors by name.
struct Reader<'a> {
    weights: &'a Weights<'a>,
    shape: Shape,
}

impl Reader<'_> {
    fn embeddings(&self, format: NumberFormat) -> Result<Embeddings, LoadError> {
        let words = match format {
            NumberFormat::F32 => Table::F32(self.weights.words(|value| value)?),
            _ => Table::Bf16(self.weights.words(bf16::from_f32)?),
        };
        let positions = self.weights.positions()?;
        Ok(Embeddings { words, positions, norm: self.norm("embeddings.LayerNorm")? })
    }

    /// Reads all layers and packs their weights. `before` is the norm ahead of the first layer.
    fn layers<K: Kernel>(
        &self,
        before: &mut Norm,
        reaches: &[Reach],
    ) -> Result<(Vec<Layer>, Packed<K>), LoadError> {
        let mut layers = Vec::<Layer>::new();
        let mut packed = Packed::default();
        let count = self.weights.model().bert.num_hidden_layers;
        for index in 0..count {
            let before = layers.last_mut().map_or(&mut *before, |layer| &mut layer.down_norm);
            let layer = self.layer(index, before, reaches.get(index), &mut packed)?;
            layers.push(layer);
            if index == 0 {
                // All layers are of one size.
                packed.settle_with_room(count);
            }
        }
        Ok((layers, packed))
    }

    fn layer<K: Kernel>(
        &self,
        index: usize,
        before: &mut Norm,
        reach: Option<&Reach>,
        packed: &mut Packed<K>,
    ) -> Result<Layer, LoadError> {
        let hidden = self.shape.hidden;
        let wide = self.weights.model().bert.intermediate_size;
        let at = |name: &str| format!("encoder.layer.{index}.{name}");
        let mut attention_out = self.dense(&at("attention.output.dense"), hidden, hidden)?;
        self.pad_head_inputs(&mut attention_out);
        let mut attention_norm = self.norm(&at("attention.output.LayerNorm"))?;
        let mut qkv = self.qkv(&at("attention.self"))?;
        balance(before, &mut qkv, reach.map(|reach| &reach.qkv[..]));
        let mut up = self.dense(&at("intermediate.dense"), hidden, wide)?;
        balance(&mut attention_norm, &mut up, reach.map(|reach| &reach.up[..]));
        Ok(Layer {
            qkv: packed.pack(&qkv, NO_GROUPS),
            attention_out: packed.pack(&attention_out, NO_GROUPS),
            attention_norm,
            up: packed.pack(&up, NO_GROUPS),
            down: packed.pack(&self.dense(&at("output.dense"), wide, hidden)?, K::GROUP),
            down_norm: self.norm(&at("output.LayerNorm"))?,
        })
    }

    /// Returns the three projections as one. The scores' scale is part of the queries' weights, so it is not applied
    /// later.
    fn qkv(&self, at: &str) -> Result<Dense, LoadError> {
        let hidden = self.shape.hidden;
        let bert = &self.weights.model().bert;
        let scale = (1.0 / (bert.head_size() as f64).sqrt()) as f32;
        let mut all = Dense { weights: Vec::new(), bias: Vec::new(), inputs: hidden };
        for (name, scale) in [("query", scale), ("key", 1.0), ("value", 1.0)] {
            let part = self.dense(&format!("{at}.{name}"), hidden, hidden)?;
            let real = bert.head_size();
            for head in 0..self.shape.heads {
                let outputs = head * real..(head + 1) * real;
                let weights = &part.weights[outputs.start * hidden..outputs.end * hidden];
                all.weights.extend(weights.iter().map(|x| x * scale));
                all.bias.extend(part.bias[outputs].iter().map(|x| x * scale));
                let end = all.bias.len() + self.shape.head - real;
                all.bias.resize(end, 0.0);
                all.weights.resize(end * hidden, 0.0);
            }
            let end = all.bias.len().next_multiple_of(PANEL);
            all.bias.resize(end, 0.0);
            all.weights.resize(end * hidden, 0.0);
        }
        Ok(all)
    }

    /// Adds inputs for the columns that pad the heads and their last panel.
    fn pad_head_inputs(&self, dense: &mut Dense) {
        let real = self.weights.model().bert.head_size();
        let inputs = self.shape.head_panels() * PANEL;
        let mut weights = Vec::with_capacity(dense.bias.len() * inputs);
        for row in dense.weights.chunks_exact(dense.inputs) {
            let end = weights.len() + inputs;
            for head in row.chunks_exact(real) {
                weights.extend_from_slice(head);
                weights.resize(weights.len() + self.shape.head - real, 0.0);
            }
            weights.resize(end, 0.0);
        }
        *dense = Dense { weights, bias: std::mem::take(&mut dense.bias), inputs };
    }

    fn dense(&self, at: &str, inputs: usize, outputs: usize) -> Result<Dense, LoadError> {
        Ok(Dense {
            weights: self.weights.values(&format!("{at}.weight"), &[outputs, inputs])?,
            bias: self.weights.values(&format!("{at}.bias"), &[outputs])?,
            inputs,
        })
    }

    fn norm(&self, at: &str) -> Result<Norm, LoadError> {
        let hidden = [self.shape.hidden];
        let gamma = self.weights.values(&format!("{at}.weight"), &hidden)?;
        Ok(Norm {
            next: gamma.clone(),
            gamma,
            beta: self.weights.values(&format!("{at}.bias"), &hidden)?,
            epsilon: self.weights.model().bert.layer_norm_eps as f32,
        })
    }
}
