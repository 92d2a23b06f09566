//! Checks the encoder on a real GPU against sentence-transformers (the golden texts) and against the CPU, and panics at
//! the first difference. It needs a GPU, so it is no test: `tests/gpu/run.sh` runs it.
#![expect(
    clippy::print_stdout,
    reason = "says how close it was, not only that it was close enough"
)]

use std::path::PathBuf;

use serde::Deserialize;
use toolgate_encoder::{Device, Embedding, EncoderConfig, EncoderHandle, NumberFormat};
use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};

fn main() {
    let checks: [(&str, fn()); 6] = [
        ("bf16_is_close_to_the_reference_and_the_cpu", bf16_is_close_to_the_reference_and_the_cpu),
        ("f32_is_the_reference", f32_is_the_reference),
        ("a_text_alone_embeds_as_it_does_in_a_batch", a_text_alone_embeds_as_it_does_in_a_batch),
        ("buffers_grow_between_batches_without_harm", buffers_grow_between_batches_without_harm),
        (
            "a_gpu_that_is_not_there_is_an_error_and_never_the_cpu",
            a_gpu_that_is_not_there_is_an_error_and_never_the_cpu,
        ),
        ("auto_finds_the_gpu", auto_finds_the_gpu),
    ];
    for (name, check) in checks {
        check();
        println!("{name}: ok");
    }
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    embedding: Vec<f32>,
}

fn cases() -> Vec<Case> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/all-MiniLM-L6-v2+tools-v1.json");
    let text = std::fs::read_to_string(path).expect("the golden file is committed");
    serde_json::from_str(&text).expect("the golden file is a list of cases")
}

fn texts(cases: &[Case]) -> Vec<String> {
    cases.iter().map(|case| case.text.clone()).collect()
}

fn model_dir() -> PathBuf {
    let dir = default_model_dir().expect("a home directory");
    fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
    dir
}

fn encoder(device: Device, format: NumberFormat, max_batch_tokens: usize) -> EncoderHandle {
    let max_batch_tokens = Some(max_batch_tokens);
    let config = EncoderConfig { device, format, max_batch_tokens, ..EncoderConfig::default() };
    EncoderHandle::spawn(&model_dir(), &config).expect("the model loads")
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Checks that every vector is close to the golden one and to the CPU's; prints the worst cosines.
fn check(format: NumberFormat, at_least: f64) {
    let cases = cases();
    let gpu = encoder(Device::Cuda(0), format, 16_384);
    assert_eq!(gpu.model().backend, format!("cuda:0-{format}"));
    let on_gpu = gpu.embed_blocking(texts(&cases)).expect("all embed");
    let cpu = encoder(Device::Cpu, NumberFormat::F32, 512);
    let on_cpu = cpu.embed_blocking(texts(&cases)).expect("all embed");
    assert_eq!(gpu.model().fingerprint, cpu.model().fingerprint);
    let mut golden = 1.0_f64;
    let mut other = 1.0_f64;
    for ((case, gpu), cpu) in cases.iter().zip(&on_gpu).zip(&on_cpu) {
        let a = cosine(&gpu.vector, &case.embedding);
        let b = cosine(&gpu.vector, &cpu.vector);
        assert!(a >= at_least && b >= at_least, "{:?}: {a} to golden, {b} to the CPU", case.name);
        let length: f32 = gpu.vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-4, "{:?} has length {length}", case.name);
        (golden, other) = (golden.min(a), other.min(b));
    }
    println!("{format}: worst cosine {golden:.6} to golden texts, {other:.6} to the CPU in f32");
}

fn bf16_is_close_to_the_reference_and_the_cpu() {
    check(NumberFormat::Bf16, 0.999);
}

fn f32_is_the_reference() {
    check(NumberFormat::F32, 0.999_99);
}

fn a_text_alone_embeds_as_it_does_in_a_batch() {
    let cases = cases();
    let together = encoder(Device::Cuda(0), NumberFormat::Auto, 16_384);
    let alone = encoder(Device::Cuda(0), NumberFormat::Auto, 1);
    let want = together.embed_blocking(texts(&cases)).expect("all embed");
    let got = alone.embed_blocking(texts(&cases)).expect("all embed");
    for ((case, want), got) in cases.iter().zip(&want).zip(&got) {
        let cosine = cosine(&want.vector, &got.vector);
        assert!(cosine > 0.9999, "{:?}: {cosine}", case.name);
    }
}

fn buffers_grow_between_batches_without_harm() {
    let gpu = encoder(Device::Cuda(0), NumberFormat::Auto, 65_536);
    let text = |i: usize| "find the open issue of a user ".repeat(1 + i % 40);
    let few = |count: usize| -> Vec<Embedding> {
        gpu.embed_blocking((0..count).map(text).collect()).expect("all embed")
    };
    let before = few(3);
    let many = few(1_500);
    let after = few(3);
    for i in 0..3 {
        assert_eq!(before[i], after[i]);
        assert!(cosine(&before[i].vector, &many[i].vector) > 0.9999);
    }
}

fn a_gpu_that_is_not_there_is_an_error_and_never_the_cpu() {
    let config = EncoderConfig { device: Device::Cuda(99), ..EncoderConfig::default() };
    let error = EncoderHandle::spawn(&model_dir(), &config).expect_err("there is no such GPU");
    assert!(error.to_string().contains("cuda:99 cannot be used"), "{error}");
}

fn auto_finds_the_gpu() {
    let encoder = encoder(Device::Auto, NumberFormat::Auto, 512);
    assert_eq!(encoder.model().backend, "cuda:0-bf16");
}
