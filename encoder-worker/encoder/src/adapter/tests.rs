//! Tests that compare a merged adapter with a model whose weights were changed in its file, and tests of invalid files.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;
use tempfile::TempDir;

use super::{AdapterChoice, Header, SHIPPED, file};
use crate::device::NumberFormat;
use crate::encoder::{Embedding, EncoderConfig, EncoderHandle, Flow};
use crate::load_error::LoadError;
use crate::tiny_model::{HIDDEN, TinyModel};

const MODULE: &str = "encoder.layer.1.attention.self.query";
const RANK: usize = 2;
const ALPHA: f32 = 3.0;

/// Returns small numbers that differ.
fn ramp(length: usize) -> Vec<f32> {
    (0..length).map(|i| ((i * 7 % 13) as f32 - 6.0) / 32.0).collect()
}

struct Written {
    dir: TempDir,
    metadata: HashMap<String, String>,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Written {
    /// Writes an adapter of `model`'s query projection in the second layer.
    fn for_model(model: &TinyModel) -> Self {
        let none = EncoderConfig { adapter: AdapterChoice::None, ..config() };
        EncoderHandle::spawn(model.path(), &none).expect("the tiny model loads");
        let weights = std::fs::read(model.path().join("model.safetensors")).expect("weights");
        let sha256 = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(weights));
        let metadata =
            [("base_sha256", sha256), ("rank", RANK.to_string()), ("alpha", ALPHA.to_string())];
        Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            metadata: metadata.map(|(key, value)| (key.to_owned(), value)).into(),
            tensors: vec![
                (format!("{MODULE}.lora_A.weight"), vec![RANK, HIDDEN], ramp(RANK * HIDDEN)),
                (format!("{MODULE}.lora_B.weight"), vec![HIDDEN, RANK], ramp(HIDDEN * RANK)),
            ],
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("mine.safetensors")
    }

    fn write(&self) -> AdapterChoice {
        let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let content: Vec<(&str, &[usize], Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, shape, values)| (name.as_str(), shape.as_slice(), bytes(values)))
            .collect();
        let views = content.iter().map(|(name, shape, bytes)| {
            (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("a tensor"))
        });
        let content = serialize(views, Some(self.metadata.clone())).expect("a file");
        std::fs::write(self.path(), content).expect("the file is written");
        AdapterChoice::File(self.path())
    }
}

fn config() -> EncoderConfig {
    let threads = NonZeroUsize::new(1);
    EncoderConfig { threads, format: NumberFormat::F32, ..EncoderConfig::default() }
}

fn spawn(model: &TinyModel, adapter: AdapterChoice) -> Result<EncoderHandle, LoadError> {
    EncoderHandle::spawn(model.path(), &EncoderConfig { adapter, ..config() })
}

async fn embed(encoder: &EncoderHandle) -> Vec<Embedding> {
    let texts = ["open issue", "issue"].map(str::to_owned).to_vec();
    encoder.embed(texts, Flow::ALONE, None).await.expect("it embeds")
}

#[tokio::test]
async fn a_merged_adapter_is_the_model_with_other_weights() {
    let mut model = TinyModel::new();
    let written = Written::for_model(&model);
    let adapted = spawn(&model, written.write()).expect("it fits");
    let plain = spawn(&model, AdapterChoice::None).expect("it loads");
    assert!(adapted.model().name.ends_with("+mine"), "{:?}", adapted.model());
    assert_ne!(adapted.model().fingerprint, plain.model().fingerprint);

    let [(_, _, a), (_, _, b)] = &written.tensors[..] else { unreachable!("two tensors") };
    let name = format!("{MODULE}.weight");
    let (_, weight) = model.tensors.get_mut(&name).expect("the model has it");
    for (at, value) in weight.iter_mut().enumerate() {
        let row = at / HIDDEN;
        let column = at % HIDDEN;
        let product: f32 = (0..RANK).map(|r| b[row * RANK + r] * a[r * HIDDEN + column]).sum();
        *value += ALPHA / RANK as f32 * product;
    }
    model.write_weights();
    let changed = spawn(&model, AdapterChoice::Auto).expect("it loads");
    assert!(!changed.model().name.contains('+'), "no adapter is known for it");
    let adapted = embed(&adapted).await;
    let changed = embed(&changed).await;
    let plain = embed(&plain).await;
    let distance = |one: &[Embedding], other: &[Embedding]| {
        let pairs = one.iter().zip(other).flat_map(|(a, b)| a.vector.iter().zip(&b.vector));
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(distance(&adapted, &changed) < 1e-5);
    assert!(distance(&adapted, &plain) > 1e-3, "the adapter is large enough to be seen");
}

#[test]
fn what_is_wrong_with_an_adapter_is_said() {
    let model = TinyModel::new();
    let refused = |change: &dyn Fn(&mut Written), part: &str| {
        let mut written = Written::for_model(&model);
        change(&mut written);
        let text = spawn(&model, written.write()).expect_err("refused").to_string();
        assert!(text.contains("mine.safetensors") && text.contains(part), "{text:?}, {part:?}");
    };
    let set = |key: &'static str, value: &'static str| {
        move |written: &mut Written| {
            written.metadata.insert(key.into(), value.into());
        }
    };
    refused(&set("base_sha256", "0"), "made for weights of SHA-256 \"0\"");
    refused(&set("rank", "0"), "rank must be from 1");
    refused(&set("rank", "3"), "is not of rank 3");
    refused(&set("alpha", "inf"), "alpha must be a number");
    let without = |written: &mut Written| written.metadata.clear();
    refused(&without, "lack rank");
    refused(&|written| written.tensors.truncate(1), "lora_B.weight is missing");
    refused(&|written| drop(written.tensors.remove(0)), "has none beside it");
    refused(&|written| written.tensors[1].0 = "pooler.weight".into(), "pooler.weight");
    refused(&|written| written.tensors[0].1 = vec![HIDDEN, RANK], "is not of rank 2");
    let narrow = |written: &mut Written| {
        written.tensors[0].1 = vec![RANK, HIDDEN / 2];
        written.tensors[0].2.truncate(RANK * HIDDEN / 2);
    };
    refused(&narrow, "don't fit [48, 48]");
    let elsewhere = |written: &mut Written| {
        for (name, ..) in &mut written.tensors {
            *name = name.replace("layer.1", "layer.9");
        }
    };
    refused(&elsewhere, "the model has no encoder.layer.9");

    let missing = AdapterChoice::File("nowhere.safetensors".into());
    let text = spawn(&model, missing).expect_err("refused").to_string();
    assert!(text.contains("cannot read nowhere.safetensors"), "{text}");
    let written = Written::for_model(&model);
    std::fs::write(written.path(), json!({}).to_string()).expect("written");
    let text = spawn(&model, AdapterChoice::File(written.path())).expect_err("refused").to_string();
    assert!(text.contains("mine.safetensors"), "{text}");
}

#[test]
fn shipped_adapters_are_whole() {
    for (name, content) in SHIPPED {
        let header = Header::read(content).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(header.base_sha256.len(), 64, "{name}");
        let factors = file::factors(content, header.rank).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!factors.is_empty(), "{name}");
    }
}

#[test]
fn a_choice_is_read_as_it_is_written() {
    for text in ["auto", "none", "some/file.safetensors"] {
        let choice: AdapterChoice = text.parse().expect("any text is a choice");
        assert_eq!(choice.to_string(), text);
        assert_eq!(AdapterChoice::of(choice.as_path()), choice);
    }
    assert_eq!("auto".parse(), Ok(AdapterChoice::default()));
}
