//! Tests of the forward pass against the same network in plain loops.

mod team;

use std::num::NonZeroUsize;

use serde_json::json;

use super::isa::Isa;
use crate::adapter::AdapterChoice;
use crate::backend::Batch;
use crate::device::NumberFormat;
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of, modules, reference};
use crate::weights::Weights;

const TEXTS: [&str; 4] = [
    "a b c",
    "",
    "i h g f e d c b a i h g f e d c b a i h g f e d c b a i h g f e d c",
    "c c c c c",
];

fn forward(model: &TinyModel, texts: &[&str]) -> Vec<Vec<f32>> {
    forward_with(model, texts, Isa::detect().expect("no limit is set"), NumberFormat::F32, 2)
}

fn forward_with(
    model: &TinyModel,
    texts: &[&str],
    isa: Isa,
    format: NumberFormat,
    threads: usize,
) -> Vec<Vec<f32>> {
    let dir = ModelDir::open(model.path()).expect("the directory is right");
    let weights = dir.read_weights(&AdapterChoice::None).expect("the weights are there");
    let weights = Weights::open(&dir, &weights).expect("the weights are right");
    let threads = NonZeroUsize::new(threads);
    let mut bert = super::load_for(isa, &weights, format, threads).expect("the model loads");
    let mut batch = Batch::default();
    for text in texts {
        batch.push(&ids_of(text));
    }
    bert.forward(&batch).expect("the model runs")
}

fn assert_close(got: &[f32], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 2e-4, "{what}: {got}, not {want}");
    }
}

fn check(
    hidden_act: &str,
    activation: fn(f64) -> f64,
    pool: &str,
    pooled: fn(&[Vec<f64>]) -> Vec<f64>,
) {
    let model = TinyModel::new();
    model.change("config.json", &json!({"hidden_act": hidden_act}));
    model.write_json("1_Pooling/config.json", &json!({ pool: true }));
    model.write_json("modules.json", &modules(&["Transformer", "Pooling"]));
    for (text, got) in TEXTS.iter().zip(forward(&model, &TEXTS)) {
        let want = pooled(&reference(&model.tensors, &ids_of(text), activation));
        assert_close(&got, &want, &format!("{hidden_act}, {pool}, {text:?}"));
    }
}

fn gelu(x: f64) -> f64 {
    // A continued fraction of the complementary error function would do too; a fine sum is simpler.
    let steps = 4_000;
    let width = x / f64::from(steps);
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let middle = (0..steps).map(|i| density((f64::from(i) + 0.5) * width) * width);
    x * (0.5 + middle.sum::<f64>())
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh())
}

fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let count = rows.len() as f64;
    (0..rows[0].len()).map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / count).collect()
}

fn largest(rows: &[Vec<f64>]) -> Vec<f64> {
    (0..rows[0].len()).map(|i| rows.iter().map(|row| row[i]).fold(f64::MIN, f64::max)).collect()
}

#[test]
fn every_activation_and_pooling_follows_the_definition() {
    check("gelu", gelu, "pooling_mode_mean_tokens", mean);
    check("gelu_new", gelu_tanh, "pooling_mode_cls_token", |rows| rows[0].clone());
    check("relu", |x| x.max(0.0), "pooling_mode_max_tokens", largest);
}

#[test]
fn a_text_does_not_see_its_neighbours() {
    let model = TinyModel::new();
    let together = forward(&model, &TEXTS);
    for (text, together) in TEXTS.iter().zip(together) {
        let alone = forward(&model, &[text]).remove(0);
        let alone: Vec<f64> = alone.into_iter().map(f64::from).collect();
        assert_close(&together, &alone, text);
    }
}

#[test]
fn long_texts_are_split_among_threads_without_a_seam() {
    let model = TinyModel::new();
    model.change("config.json", &json!({"max_position_embeddings": 200}));
    let mut model = model;
    let table =
        model.tensors.get_mut("embeddings.position_embeddings.weight").expect("the table is there");
    *table = (vec![200, 48], table.1.iter().copied().cycle().take(200 * 48).collect());
    model.write_weights();
    let text = "a b c d e f g h i ".repeat(20);
    let dir_vectors = forward(&model, &[text.trim()]);
    let rows = reference(&model.tensors, &ids_of(&text), gelu);
    let pooled = mean(&rows);
    let length = pooled.iter().map(|x| x * x).sum::<f64>().sqrt();
    let want: Vec<f64> = pooled.iter().map(|x| x / length).collect();
    assert_close(&dir_vectors[0], &want, "182 tokens");
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn every_number_format_is_close_to_f32_on_every_instruction_set() {
    let model = TinyModel::new();
    let exact = forward(&model, &TEXTS);
    for limit in ["portable", "avx2", "avxvnni", "avx512"] {
        let isa = Isa::up_to(limit).expect("known");
        for (format, least) in [
            (NumberFormat::F32, 0.999_99),
            (NumberFormat::Bf16, 0.999),
            (NumberFormat::Int8, 0.995),
        ] {
            let got = forward_with(&model, &TEXTS, isa, format, 2);
            for (got, exact) in got.iter().zip(&exact) {
                let cosine = cosine(got, exact);
                assert!(cosine > least, "{limit}, {format}: {cosine}");
            }
        }
    }
}

#[test]
fn embeddings_do_not_depend_on_threads_or_neighbours() {
    let model = TinyModel::new();
    let isa = Isa::detect().expect("no limit is set");
    for format in [NumberFormat::F32, NumberFormat::Bf16, NumberFormat::Int8] {
        let one = forward_with(&model, &TEXTS, isa, format, 1);
        for threads in [2, 3, 5] {
            assert_eq!(forward_with(&model, &TEXTS, isa, format, threads), one, "{threads}");
            for (text, one) in TEXTS.iter().zip(&one) {
                let alone = forward_with(&model, &[text], isa, format, threads);
                assert_eq!(&alone[0], one, "{format}, {threads} threads, {text:?}");
            }
        }
    }
}

#[test]
fn a_class_prefix_in_tensor_names_is_accepted() {
    let mut model = TinyModel::new();
    let plain = forward(&model, &["a b"]);
    model.tensors =
        model.tensors.into_iter().map(|(name, tensor)| (format!("bert.{name}"), tensor)).collect();
    model.write_weights();
    assert_eq!(forward(&model, &["a b"]), plain);
}

#[test]
fn an_xlm_r_is_a_bert_whose_positions_begin_later() {
    let plain = forward(&TinyModel::new(), &TEXTS);
    for pad_token_id in [0, 1, 5] {
        let moved = TinyModel::new().into_xlm_roberta(pad_token_id);
        assert_eq!(forward(&moved, &TEXTS), plain, "pad_token_id {pad_token_id}");
    }
    let roberta = TinyModel::new().into_xlm_roberta(1);
    roberta.change("config.json", &json!({"model_type": "roberta", "pad_token_id": null}));
    assert_eq!(forward(&roberta, &TEXTS), plain, "its padding token is 1 where nothing says so");
}
