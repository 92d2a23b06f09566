//! The real model against sentence-transformers: embeddings, token counts and truncation of the
//! golden texts (`tests/golden` at the top says how they were made).

use std::path::PathBuf;

use serde::Deserialize;
use toolgate_encoder_worker::model_fetch::{Silent, Source, default_model_dir, fetch};
use toolgate_encoder_worker::{Embedding, EncoderConfig, EncoderHandle};

const COSINE_AT_LEAST: f64 = 0.9999;

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    tokens: u32,
    truncated: bool,
    embedding: Vec<f32>,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/all-MiniLM-L6-v2.json");
    let text = std::fs::read_to_string(path).expect("the golden file is committed");
    serde_json::from_str(&text).expect("the golden file is a list of cases")
}

/// The cached model, fetched first when it is not there: this test never skips.
fn model_dir() -> PathBuf {
    let dir = default_model_dir().expect("a home directory");
    fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
    dir
}

fn encoder(max_batch_tokens: usize) -> EncoderHandle {
    let config = EncoderConfig { max_batch_tokens, ..EncoderConfig::default() };
    EncoderHandle::spawn(&model_dir(), &config).expect("the model loads")
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn check(case: &Case, got: &Embedding) -> f64 {
    assert_eq!(got.tokens, case.tokens, "tokens of {:?}", case.name);
    assert_eq!(got.truncated, case.truncated, "truncation of {:?}", case.name);
    assert_eq!(got.vector.len(), case.embedding.len());
    let length: f32 = got.vector.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5, "length of {:?}", case.name);
    let cosine = cosine(&got.vector, &case.embedding);
    assert!(cosine >= COSINE_AT_LEAST, "{:?}: cosine {cosine}", case.name);
    cosine
}

#[test]
fn embeddings_match_sentence_transformers_in_packed_batches() {
    let cases = cases();
    let texts = cases.iter().map(|case| case.text.clone()).collect();
    let got = encoder(512).embed_blocking(texts).expect("all embed");
    assert_eq!(got.len(), cases.len());
    let worst = cases.iter().zip(&got).map(|(case, got)| check(case, got)).fold(1.0, f64::min);
    // Far closer than promised: anything less means that an operation lost precision.
    assert!(worst > 0.999_999, "the worst cosine is {worst}");
}

#[test]
fn a_text_alone_embeds_as_it_does_in_a_batch() {
    let encoder = encoder(1);
    for case in cases() {
        let got = encoder.embed_blocking(vec![case.text.clone()]).expect("it embeds");
        check(&case, &got[0]);
    }
}

#[test]
fn the_description_is_that_of_the_model() {
    let encoder = encoder(512);
    let model = encoder.model();
    assert_eq!(model.name, "all-MiniLM-L6-v2");
    assert_eq!(model.dimensions, 384);
    assert_eq!(model.max_tokens, 256);
    assert_eq!(model.backend, "cpu-f32");
    assert_eq!(model.fingerprint.len(), 64);
}
