//! Measures one engine's row of the encoder comparison (`make bench-encoders`, tests/bench/README.md): reads the
//! workloads, runs one number format with a number of threads, and prints one line of JSON.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use serde::{Deserialize, Serialize};
use toolgate_encoder::{AdapterChoice, Batch, Device, EncoderConfig, LoadedModel, NumberFormat};
use toolgate_model_hub::default_model_dir;

/// Calls before the clock starts, and the fewest that are timed.
const WARM_UP_CALLS: usize = 2;
const LEAST_CALLS: usize = 3;
/// Rounds of tokenizer calls that are timed; the median counts.
const TOKENIZER_ROUNDS: usize = 50;

type Failure = Box<dyn Error>;

#[derive(Parser)]
struct Arguments {
    /// The workloads: one JSON object a line.
    #[arg(long)]
    workloads: PathBuf,
    /// f32, bf16 or int8.
    #[arg(long)]
    format: NumberFormat,
    #[arg(long)]
    threads: NonZeroUsize,
    /// How long each workload is timed.
    #[arg(long)]
    seconds: f64,
}

/// Texts to embed, `batch` at a time.
#[derive(Deserialize)]
struct Workload {
    name: String,
    batch: usize,
    texts: Vec<String>,
    /// Reference embeddings by fp32; a workload that has some is compared and not timed.
    #[serde(default)]
    embeddings: Vec<Vec<f32>>,
}

/// Report that tests/bench/encoders.py reads.
#[derive(Default, Serialize)]
struct Report {
    engine: String,
    load_ms: f64,
    tokens: BTreeMap<String, usize>,
    p50_ms: BTreeMap<String, f64>,
    texts_per_s: BTreeMap<String, f64>,
    tokenize_us: f64,
    cosine_min: f64,
    rss_mib: f64,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let workloads = read_workloads(&arguments.workloads)?;
    let (mut model, mut report) = load(&arguments)?;
    for workload in &workloads {
        let ids = tokenize(&model, &workload.texts)?;
        report.tokens.insert(workload.name.clone(), ids.iter().map(Vec::len).sum());
        if workload.embeddings.is_empty() {
            time(&mut model, workload, &ids, &arguments, &mut report)?;
        } else {
            report.cosine_min = least_cosine(&mut model, &ids, &workload.embeddings)?;
        }
        if workload.name == "short" {
            report.tokenize_us = time_tokenizer(&model, &workload.texts)?;
        }
    }
    report.rss_mib = resident_mib()?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn read_workloads(path: &Path) -> Result<Vec<Workload>, Failure> {
    let lines = fs::read_to_string(path)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn load(arguments: &Arguments) -> Result<(LoadedModel, Report), Failure> {
    let dir = default_model_dir().ok_or("no home directory, and TOOLGATE_MODEL_DIR is not set")?;
    let config = EncoderConfig {
        device: Device::Cpu,
        format: arguments.format,
        threads: Some(arguments.threads),
        // The same model that the other engines run.
        adapter: AdapterChoice::None,
        ..EncoderConfig::default()
    };
    let started = Instant::now();
    let model = LoadedModel::load(&dir, &config)?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let report = Report { engine: model.backend().to_owned(), load_ms, ..Report::default() };
    Ok((model, report))
}

fn tokenize(model: &LoadedModel, texts: &[String]) -> Result<Vec<Vec<u32>>, Failure> {
    Ok(texts.iter().map(|text| model.tokenize(text)).collect::<Result<_, _>>()?)
}

/// Adds the workload's median: the latency for single texts, the throughput for batches.
fn time(
    model: &mut LoadedModel,
    workload: &Workload,
    ids: &[Vec<u32>],
    arguments: &Arguments,
    report: &mut Report,
) -> Result<(), Failure> {
    let batches: Vec<Batch> = ids.chunks(workload.batch).map(batch).collect();
    let median = median_seconds(model, &batches, Duration::try_from_secs_f64(arguments.seconds)?)?;
    let name = workload.name.clone();
    if workload.batch == 1 {
        report.p50_ms.insert(name, median * 1e3);
    } else {
        report.texts_per_s.insert(name, workload.batch as f64 / median);
    }
    Ok(())
}

fn batch(texts: &[Vec<u32>]) -> Batch {
    let mut batch = Batch::default();
    texts.iter().for_each(|ids| batch.push(ids));
    batch
}

/// Runs the batches in turn until the time is over; returns the median in seconds.
fn median_seconds(
    model: &mut LoadedModel,
    batches: &[Batch],
    limit: Duration,
) -> Result<f64, Failure> {
    let mut batches = batches.iter().cycle();
    let mut next = || batches.next().ok_or("a workload has texts");
    for _ in 0..WARM_UP_CALLS {
        black_box(model.embed(next()?)?);
    }
    let mut samples = Vec::new();
    let started = Instant::now();
    while samples.len() < LEAST_CALLS || started.elapsed() < limit {
        let batch = next()?;
        let call = Instant::now();
        black_box(model.embed(batch)?);
        samples.push(call.elapsed().as_secs_f64());
    }
    Ok(median(samples))
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Returns the smallest cosine to the reference; embeds one text at a time, as the reference was made.
fn least_cosine(
    model: &mut LoadedModel,
    ids: &[Vec<u32>],
    expected: &[Vec<f32>],
) -> Result<f64, Failure> {
    let mut least = f64::INFINITY;
    for (ids, expected) in ids.iter().zip(expected) {
        let found = model.embed(&batch(std::slice::from_ref(ids)))?;
        least = least.min(cosine(&found[0], expected));
    }
    Ok(least)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn time_tokenizer(model: &LoadedModel, texts: &[String]) -> Result<f64, Failure> {
    let mut samples = Vec::new();
    for _ in 0..TOKENIZER_ROUNDS {
        let round = Instant::now();
        black_box(tokenize(model, texts)?);
        samples.push(round.elapsed().as_secs_f64() * 1e6 / texts.len() as f64);
    }
    Ok(median(samples))
}

fn resident_mib() -> Result<f64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
