//! The forward pass against the same network in plain loops.

use std::num::NonZeroUsize;

use serde_json::json;

use super::CandleBert;
use crate::backend::{Backend, Batch};
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of, modules, reference};

const TEXTS: [&str; 4] = [
    "a b c",
    "",
    "i h g f e d c b a i h g f e d c b a i h g f e d c b a i h g f e d c",
    "c c c c c",
];

fn forward(model: &TinyModel, texts: &[&str]) -> Vec<Vec<f32>> {
    let dir = ModelDir::open(model.path()).expect("the directory is right");
    let weights = dir.read_weights().expect("the weights are there");
    let threads = NonZeroUsize::new(2);
    let mut bert = CandleBert::load(&dir, &weights, threads).expect("the model loads");
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
    // The complementary error function by its continued fraction would do; a fine sum is simpler.
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

#[test]
fn a_class_prefix_in_tensor_names_is_accepted() {
    let mut model = TinyModel::new();
    let plain = forward(&model, &["a b"]);
    model.tensors =
        model.tensors.into_iter().map(|(name, tensor)| (format!("bert.{name}"), tensor)).collect();
    model.write_weights();
    assert_eq!(forward(&model, &["a b"]), plain);
}
