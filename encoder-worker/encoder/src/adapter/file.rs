//! File format of adapters: safetensors, with PEFT's tensor names and with settings in the metadata.

use std::collections::BTreeMap;

use candle_core::safetensors::{Load, SliceSafetensors};
use candle_core::{DType, Device, Tensor};
use safetensors::SafeTensors;

/// Largest rank. Beyond it, an adapter is no smaller than the weights that it changes.
const RANK_MAX: usize = 1_024;

const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// Settings in the file's metadata.
pub(super) struct Header {
    /// SHA-256 of the weights file that the adapter was made for, in hex.
    pub(super) base_sha256: String,
    pub(super) rank: usize,
    pub(super) alpha: f64,
}

impl Header {
    pub(super) fn read(content: &[u8]) -> Result<Self, String> {
        let (_, metadata) =
            SafeTensors::read_metadata(content).map_err(|error| error.to_string())?;
        let text = |key: &str| {
            let found = metadata.metadata().as_ref().and_then(|all| all.get(key));
            found.cloned().ok_or_else(|| format!("its metadata lack {key}"))
        };
        let rank = text("rank")?.parse().ok().filter(|rank| (1..=RANK_MAX).contains(rank));
        let alpha = text("alpha")?.parse().ok().filter(|alpha: &f64| alpha.is_finite());
        Ok(Self {
            base_sha256: text("base_sha256")?,
            rank: rank.ok_or_else(|| format!("its rank must be from 1 to {RANK_MAX}"))?,
            alpha: alpha.ok_or("its alpha must be a number")?,
        })
    }
}

/// Factors whose product `b a` is added to one weight.
pub(super) struct Factors {
    /// Factor of shape rank x inputs.
    pub(super) a: Tensor,
    /// Factor of shape outputs x rank.
    pub(super) b: Tensor,
}

/// Reads the factors by module.
pub(super) fn factors(content: &[u8], rank: usize) -> Result<BTreeMap<String, Factors>, String> {
    let tensors = SliceSafetensors::new(content).map_err(|error| error.to_string())?;
    let names: Vec<String> = tensors.tensors().into_iter().map(|(name, _)| name).collect();
    if let Some(name) = names.iter().find(|name| !belongs(&tensors, name)) {
        return Err(format!("tensor {name} is no {A} or has none beside it"));
    }
    let mut factors = BTreeMap::new();
    for module in names.iter().filter_map(|name| name.strip_suffix(A)) {
        let a = format!("{module}{A}");
        let b = format!("{module}{B}");
        let pair = Factors { a: load(&tensors, &a)?, b: load(&tensors, &b)? };
        if pair.a.dims().first() != Some(&rank) || pair.b.dims().get(1) != Some(&rank) {
            return Err(format!("{module} is not of rank {rank}"));
        }
        factors.insert(module.to_owned(), pair);
    }
    Ok(factors)
}

/// Returns true if a tensor is the first of a pair, or the second of a pair whose first exists.
fn belongs(tensors: &SliceSafetensors<'_>, name: &str) -> bool {
    let has_a = |module: &str| tensors.get(&format!("{module}{A}")).is_ok();
    name.ends_with(A) || name.strip_suffix(B).is_some_and(has_a)
}

fn load(tensors: &SliceSafetensors<'_>, name: &str) -> Result<Tensor, String> {
    let view = tensors.get(name).map_err(|_| format!("tensor {name} is missing"))?;
    let tensor = view.load(&Device::Cpu).and_then(|tensor| tensor.to_dtype(DType::F32));
    tensor.map_err(|error| format!("tensor {name}: {error}"))
}
