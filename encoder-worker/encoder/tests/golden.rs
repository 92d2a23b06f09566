//! Tests of the real model, with and without its adapter, against sentence-transformers: embeddings, token counts and
//! truncation of the golden texts (`tests/golden` at the top describes how they were made).

use std::path::PathBuf;

use serde::Deserialize;
use toolgate_encoder::{
    AdapterChoice, Device, Embedding, EncoderConfig, EncoderHandle, NumberFormat,
};
use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};

const FORMATS: [NumberFormat; 3] = [NumberFormat::F32, NumberFormat::Bf16, NumberFormat::Int8];

/// Returns the smallest cosine to the golden embeddings that a format must reach. Measured values are better
/// (docs/figures.md); a smaller one means that an operation lost precision.
fn least_cosine(format: NumberFormat) -> f64 {
    match format {
        NumberFormat::F32 => 0.999_999,
        NumberFormat::Bf16 => 0.999_9,
        _ if keeps_eight_bits() => 0.998,
        _ => 0.996,
    }
}

/// Returns true if the CPU multiplies 8-bit values without loss. Plain AVX2 adds up two products in 16 bits, so
/// activations have only 7 bits there.
#[cfg(target_arch = "x86_64")]
fn keeps_eight_bits() -> bool {
    let has_vnni = is_x86_feature_detected!("avx512vnni") || is_x86_feature_detected!("avxvnni");
    has_vnni || !is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn keeps_eight_bits() -> bool {
    true
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    tokens: u32,
    truncated: bool,
    embedding: Vec<f32>,
}

/// Suffix that the shipped adapter adds to the model's name.
const ADAPTED: &str = "+tools-v1";

/// Adapters, each with its suffix to the model's name and to that of its golden file.
const ADAPTERS: [(AdapterChoice, &str); 2] =
    [(AdapterChoice::Auto, ADAPTED), (AdapterChoice::None, "")];

fn cases(suffix: &str) -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
    let text = std::fs::read_to_string(format!("{folder}/all-MiniLM-L6-v2{suffix}.json"));
    let text = text.expect("the golden file is committed");
    serde_json::from_str(&text).expect("the golden file is a list of cases")
}

/// Returns the directory of the cached model; fetches it first if it is missing, so this test never skips.
fn model_dir() -> PathBuf {
    let dir = default_model_dir().expect("a home directory");
    fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
    dir
}

fn encoder(max_batch_tokens: usize, format: NumberFormat) -> EncoderHandle {
    adapted(max_batch_tokens, format, AdapterChoice::Auto)
}

fn adapted(max_batch_tokens: usize, format: NumberFormat, adapter: AdapterChoice) -> EncoderHandle {
    let config = EncoderConfig {
        max_batch_tokens: Some(max_batch_tokens),
        device: Device::Cpu,
        format,
        adapter,
        ..EncoderConfig::default()
    };
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
    cosine(&got.vector, &case.embedding)
}

#[test]
fn embeddings_match_sentence_transformers_in_packed_batches() {
    for (adapter, suffix) in ADAPTERS {
        for format in FORMATS {
            let encoder = adapted(512, format, adapter.clone());
            matches(&cases(suffix), &encoder, least_cosine(format));
        }
    }
}

fn matches(cases: &[Case], encoder: &EncoderHandle, least: f64) {
    let texts = cases.iter().map(|case| case.text.clone()).collect();
    let got = encoder.embed_blocking(texts).expect("all embed");
    assert_eq!(got.len(), cases.len());
    let worst = cases.iter().zip(&got).map(|(case, got)| check(case, got)).fold(1.0, f64::min);
    let of = encoder.model();
    assert!(worst > least, "{} {}: the worst cosine is {worst}", of.name, of.backend);
}

#[test]
fn a_text_alone_embeds_as_it_does_in_a_batch() {
    let cases = cases(ADAPTED);
    for format in FORMATS {
        let alone = encoder(1, format);
        let together = encoder(512, format);
        let texts = cases.iter().map(|case| case.text.clone()).collect();
        let together = together.embed_blocking(texts).expect("they embed");
        for (case, together) in cases.iter().zip(together) {
            let alone = alone.embed_blocking(vec![case.text.clone()]).expect("it embeds");
            assert_eq!(alone[0], together, "{format}: {:?}", case.name);
        }
    }
}

#[test]
fn the_description_is_that_of_the_model() {
    let fingerprints = ADAPTERS.map(|(adapter, suffix)| {
        let encoder = adapted(512, NumberFormat::Auto, adapter);
        let model = encoder.model();
        assert_eq!(model.name, format!("all-MiniLM-L6-v2{suffix}"));
        assert_eq!(model.dimensions, 384);
        assert_eq!(model.max_tokens, 256);
        assert_eq!(model.backend, "cpu-int8");
        assert_eq!(model.fingerprint.len(), 64);
        model.fingerprint.clone()
    });
    assert_ne!(fingerprints[0], fingerprints[1]);
}
