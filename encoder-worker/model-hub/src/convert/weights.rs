//! Tensors under the names of transformers, and `model.safetensors`: matrices in f16, vectors and small tables in f32.
//! The file is written from front to back, a block at a time.

use std::io::{self, Write};

use half::f16;

use super::q4_file::{BLOCK_WEIGHTS, Encoding, Q4File, Shape, Tensor};
use super::reader::Problem;

/// Bytes of a block: an f16 scale, then 16 bytes. Byte i has weight i in its low half and weight i + 16 in its high
/// half.
const BLOCK_BYTES: usize = 2 + BLOCK_WEIGHTS / 2;
/// Offset of the stored four bits above a weight's value in scales.
const OFFSET: f32 = 8.0;
/// Most bytes of a file of weights.
const MOST_BYTES: usize = 1 << 30;

/// Parts of a layer: name in the file, name in transformers, and true for a matrix, which has outputs and inputs.
const PARTS: [(&str, &str, bool); 8] = [
    ("q", "attention.self.query", true),
    ("k", "attention.self.key", true),
    ("v", "attention.self.value", true),
    ("ao", "attention.output.dense", true),
    ("aln", "attention.output.LayerNorm", false),
    ("fi", "intermediate.dense", true),
    ("fo", "output.dense", true),
    ("oln", "output.LayerNorm", false),
];

/// Tensor that fits its name and shape.
pub(super) struct Weight<'a> {
    name: String,
    shape: Vec<usize>,
    tensor: Tensor<'a>,
}

/// Returns every tensor of the network, in writing order. Other tensors are left out.
pub(super) fn of<'a>(model: &Q4File<'a>) -> Result<Vec<Weight<'a>>, Problem> {
    let mut weights = Vec::new();
    let mut add = |from: String, name: String, shape: Vec<usize>| {
        let tensor = model.tensors.get(from.as_str());
        let tensor = tensor.ok_or_else(|| format!("tensor {from:?} is missing"))?;
        check(tensor, &shape).map_err(|problem| format!("tensor {from:?}: {problem}"))?;
        weights.push(Weight { name, shape, tensor: *tensor });
        Ok::<(), Problem>(())
    };
    let Shape { hidden, layers, wide, vocabulary, positions, segments, .. } = model.shape;
    let tables = [
        ("word", "word", vocabulary),
        ("pos", "position", positions),
        ("type", "token_type", segments),
    ];
    for (from, name, rows) in tables {
        let name = format!("embeddings.{name}_embeddings.weight");
        add(format!("emb.{from}"), name, vec![rows, hidden])?;
    }
    add("emb.ln.w".into(), "embeddings.LayerNorm.weight".into(), vec![hidden])?;
    add("emb.ln.b".into(), "embeddings.LayerNorm.bias".into(), vec![hidden])?;
    for layer in 0..layers {
        for (from, name, is_matrix) in PARTS {
            let outputs = if from == "fi" { wide } else { hidden };
            let inputs = if from == "fo" { wide } else { hidden };
            let shape = if is_matrix { vec![outputs, inputs] } else { vec![outputs] };
            let name = format!("encoder.layer.{layer}.{name}");
            add(format!("l{layer}.{from}.w"), format!("{name}.weight"), shape)?;
            add(format!("l{layer}.{from}.b"), format!("{name}.bias"), vec![outputs])?;
        }
    }
    let bytes = weights.iter().map(Weight::bytes).fold(0, usize::saturating_add);
    if bytes > MOST_BYTES {
        return Err(format!("{bytes} bytes of weights are more than {MOST_BYTES}"));
    }
    Ok(weights)
}

/// Checks that the sizes agree and that every weight is finite in f16 too.
fn check(tensor: &Tensor<'_>, shape: &[usize]) -> Result<(), Problem> {
    let count: usize = shape.iter().product();
    if tensor.count != count {
        return Err(format!("{} values, but {shape:?} is its shape", tensor.count));
    }
    let bytes = match tensor.encoding {
        Encoding::F32 => Some(4 * count),
        Encoding::Q4 if count.is_multiple_of(BLOCK_WEIGHTS) => {
            Some(count / BLOCK_WEIGHTS * BLOCK_BYTES)
        }
        Encoding::Q4 => None,
    };
    if bytes != Some(tensor.content.len()) {
        return Err(format!("{} bytes are not {count} values", tensor.content.len()));
    }
    let mut blocks = blocks(tensor);
    match blocks.find(|block| !f16::from_f32(scale_of(block) * -OFFSET).is_finite()) {
        Some(block) => Err(format!("a block's scale is {}", scale_of(block))),
        None => Ok(()),
    }
}

impl Weight<'_> {
    /// Returns the bytes that the tensor takes when written.
    fn bytes(&self) -> usize {
        let of_one = if self.tensor.encoding == Encoding::Q4 { 2 } else { 4 };
        self.tensor.count.saturating_mul(of_one)
    }

    fn dtype(&self) -> &'static str {
        if self.tensor.encoding == Encoding::Q4 { "F16" } else { "F32" }
    }
}

/// Writes the whole file; `report` gets the bytes written and the total.
pub(super) fn write(
    weights: &[Weight<'_>],
    out: &mut impl Write,
    report: &mut dyn FnMut(u64, u64),
) -> io::Result<()> {
    let header = header(weights);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let total: usize = weights.iter().map(Weight::bytes).sum();
    let mut done = 0;
    for weight in weights {
        match weight.tensor.encoding {
            Encoding::F32 => out.write_all(weight.tensor.content)?,
            Encoding::Q4 => {
                blocks(&weight.tensor).try_for_each(|block| out.write_all(&to_f16(block)))?;
            }
        }
        done += weight.bytes();
        report(done as u64, total as u64);
    }
    Ok(())
}

/// Returns the JSON header that lists the tensors, padded with spaces to a multiple of eight bytes.
fn header(weights: &[Weight<'_>]) -> String {
    let mut text = String::from(r#"{"__metadata__": {"format": "pt"}"#);
    let mut start = 0;
    for weight in weights {
        let end = start + weight.bytes();
        let name = &weight.name;
        let dtype = weight.dtype();
        let shape = &weight.shape;
        text.push_str(&format!(
            r#", "{name}": {{"dtype": "{dtype}", "shape": {shape:?}, "data_offsets": [{start}, {end}]}}"#
        ));
        start = end;
    }
    text.push('}');
    let length = text.len().next_multiple_of(8);
    text.extend(std::iter::repeat_n(' ', length - text.len()));
    text
}

/// Returns the blocks of a tensor; none for a tensor in f32.
fn blocks<'a>(tensor: &Tensor<'a>) -> impl Iterator<Item = &'a [u8; BLOCK_BYTES]> + use<'a> {
    let content = if tensor.encoding == Encoding::Q4 { tensor.content } else { &[] };
    content.as_chunks().0.iter()
}

fn scale_of(block: &[u8; BLOCK_BYTES]) -> f32 {
    f16::from_le_bytes([block[0], block[1]]).to_f32()
}

/// Expands a block's weights, with a single rounding: the product is exact in f32.
fn to_f16(block: &[u8; BLOCK_BYTES]) -> [u8; 2 * BLOCK_WEIGHTS] {
    let scale = scale_of(block);
    let values: [[u8; 2]; 16] =
        std::array::from_fn(|bits| f16::from_f32(scale * (bits as f32 - OFFSET)).to_le_bytes());
    let mut out = [0; 2 * BLOCK_WEIGHTS];
    let (low, high) = out.split_at_mut(BLOCK_WEIGHTS);
    let places = low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0);
    for (byte, (low, high)) in block[2..].iter().zip(places) {
        *low = values[usize::from(byte & 15)];
        *high = values[usize::from(byte >> 4)];
    }
    out
}
