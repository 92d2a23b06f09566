//! Weights in the form that the forward pass multiplies with, before and after their upload.

use std::f64::consts::LOG2_E;

use crate::load_error::LoadError;
use crate::model_dir::BertConfig;
use crate::weights::Weights;

/// Loaded network; `M` is the type of its matrices and `V` that of its vectors, on the host or on the GPU.
pub(super) struct Model<M, V> {
    pub(super) embeddings: Embeddings<M, V>,
    pub(super) layers: Vec<Layer<M, V>>,
}

/// Input tables.
pub(super) struct Embeddings<M, V> {
    /// Token embeddings: `[vocabulary, hidden]`.
    pub(super) words: M,
    /// Position embeddings: `[positions, hidden]`. The segment's row is already added, because every text is segment 0.
    pub(super) positions: M,
    /// Weight, then bias of the layer norm: `[2, hidden]`.
    pub(super) norm: V,
}

/// Weights of one layer. Matrices are `[outputs, inputs]`, as in the file.
pub(super) struct Layer<M, V> {
    /// Queries, keys and values, one under the other: `[3 * hidden, hidden]`. Queries are scaled by log2(e) / sqrt(head
    /// size), so that 2 to the power of a score is its weight.
    pub(super) qkv: M,
    /// Bias of `qkv`: `[3 * hidden]`; the queries' part is scaled likewise.
    pub(super) qkv_bias: V,
    /// Output projection of attention: `[hidden, hidden]`.
    pub(super) attention_out: M,
    /// Output bias, then the layer norm's weight and bias: `[3, hidden]`.
    pub(super) attention_norm: V,
    /// Widening projection: `[wide, hidden]`.
    pub(super) up: M,
    /// Bias of `up`: `[wide]`.
    pub(super) up_bias: V,
    /// Narrowing projection: `[hidden, wide]`.
    pub(super) down: M,
    /// Output bias, then the layer norm's weight and bias: `[3, hidden]`.
    pub(super) down_norm: V,
}

/// Matrix, row after row.
#[derive(Debug, Clone)]
pub(super) struct HostMatrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f32>,
}

#[cfg(target_os = "linux")]
impl<M, V> Model<M, V> {
    /// Converts every matrix and vector of the network, for example to move it to a GPU.
    pub(super) fn map<N, W, E>(
        self,
        matrix: impl Fn(M) -> Result<N, E>,
        vector: impl Fn(V) -> Result<W, E>,
    ) -> Result<Model<N, W>, E> {
        let layers = self.layers.into_iter().map(|layer| layer.map(&matrix, &vector));
        Ok(Model {
            embeddings: Embeddings {
                words: matrix(self.embeddings.words)?,
                positions: matrix(self.embeddings.positions)?,
                norm: vector(self.embeddings.norm)?,
            },
            layers: layers.collect::<Result<_, E>>()?,
        })
    }
}

#[cfg(target_os = "linux")]
impl<M, V> Layer<M, V> {
    fn map<N, W, E>(
        self,
        matrix: impl Fn(M) -> Result<N, E>,
        vector: impl Fn(V) -> Result<W, E>,
    ) -> Result<Layer<N, W>, E> {
        Ok(Layer {
            qkv: matrix(self.qkv)?,
            qkv_bias: vector(self.qkv_bias)?,
            attention_out: matrix(self.attention_out)?,
            attention_norm: vector(self.attention_norm)?,
            up: matrix(self.up)?,
            up_bias: vector(self.up_bias)?,
            down: matrix(self.down)?,
            down_norm: vector(self.down_norm)?,
        })
    }
}

/// Reads the weights; every name and shape is checked against `config.json`.
pub(super) fn read(weights: &Weights<'_>) -> Result<Model<HostMatrix, Vec<f32>>, LoadError> {
    let reader = Reader { weights, bert: &weights.model().bert };
    let layers = (0..reader.bert.num_hidden_layers).map(|index| reader.layer(index));
    Ok(Model { embeddings: reader.embeddings()?, layers: layers.collect::<Result<_, _>>()? })
}

struct Reader<'a> {
    weights: &'a Weights<'a>,
    bert: &'a BertConfig,
}

impl Reader<'_> {
    fn embeddings(&self) -> Result<Embeddings<HostMatrix, Vec<f32>>, LoadError> {
        let columns = self.bert.hidden_size;
        let table = |values: Vec<f32>| HostMatrix { rows: values.len() / columns, columns, values };
        let words = table(self.weights.words(|value| value)?);
        let positions = table(self.weights.positions()?);
        Ok(Embeddings { words, positions, norm: self.norm("embeddings.LayerNorm")? })
    }

    fn layer(&self, index: usize) -> Result<Layer<HostMatrix, Vec<f32>>, LoadError> {
        let hidden = self.bert.hidden_size;
        let wide = self.bert.intermediate_size;
        let at = |name: &str| format!("encoder.layer.{index}.{name}");
        let (qkv, qkv_bias) = self.qkv(&at("attention.self"))?;
        let (attention_out, mut attention_norm) =
            self.linear(&at("attention.output.dense"), hidden, hidden)?;
        attention_norm.extend(self.norm(&at("attention.output.LayerNorm"))?);
        let (up, up_bias) = self.linear(&at("intermediate.dense"), hidden, wide)?;
        let (down, mut down_norm) = self.linear(&at("output.dense"), wide, hidden)?;
        down_norm.extend(self.norm(&at("output.LayerNorm"))?);
        Ok(Layer { qkv, qkv_bias, attention_out, attention_norm, up, up_bias, down, down_norm })
    }

    fn qkv(&self, at: &str) -> Result<(HostMatrix, Vec<f32>), LoadError> {
        let hidden = self.bert.hidden_size;
        let scale = (LOG2_E / (self.bert.head_size() as f64).sqrt()) as f32;
        let (mut joined, mut bias) = self.linear(&format!("{at}.query"), hidden, hidden)?;
        joined.values.iter_mut().chain(&mut bias).for_each(|x| *x *= scale);
        for part in ["key", "value"] {
            let (matrix, vector) = self.linear(&format!("{at}.{part}"), hidden, hidden)?;
            joined.rows += matrix.rows;
            joined.values.extend(matrix.values);
            bias.extend(vector);
        }
        Ok((joined, bias))
    }

    fn linear(
        &self,
        at: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<(HostMatrix, Vec<f32>), LoadError> {
        let weight = self.matrix(&format!("{at}.weight"), outputs, inputs)?;
        Ok((weight, self.weights.values(&format!("{at}.bias"), &[outputs])?))
    }

    fn norm(&self, at: &str) -> Result<Vec<f32>, LoadError> {
        let shape = [self.bert.hidden_size];
        let mut norm = self.weights.values(&format!("{at}.weight"), &shape)?;
        norm.extend(self.weights.values(&format!("{at}.bias"), &shape)?);
        Ok(norm)
    }

    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<HostMatrix, LoadError> {
        Ok(HostMatrix { rows, columns, values: self.weights.values(name, &[rows, columns])? })
    }
}
