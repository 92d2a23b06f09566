//! Measures the encoder's speed on one device and prints JSON lines for `tests/gpu/table.py`. It prints the time to
//! load (twice: the first load compiles the kernels if the driver has not kept them), then latency and throughput by
//! texts a call and tokens a text. Usage: `gpu_speed [DEVICE]`; a GPU is `cuda:0`.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_encoder::{Device, EncoderConfig, EncoderHandle};
use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};

/// Words of one token each, so that a text's length is known.
const WORDS: [&str; 8] = ["open", "issue", "find", "file", "note", "mail", "user", "team"];
const TOKENS: [usize; 4] = [14, 50, 200, 256];
const TEXTS: [usize; 5] = [1, 8, 32, 128, 512];
const MEASURE_FOR: Duration = Duration::from_millis(700);

fn main() -> Result<(), Box<dyn Error>> {
    let device: Device = std::env::args().nth(1).as_deref().unwrap_or("cuda:0").parse()?;
    let dir = default_model_dir().ok_or("there is no home directory")?;
    fetch(&dir, &Source::online(), &mut Silent)?;
    say(
        &json!({"engine": "toolgate", "device": device.to_string(), "load_ms": load(&dir, device)?.1}),
    )?;
    let (encoder, again) = load(&dir, device)?;
    let engine = format!("toolgate {}", encoder.model().backend);
    say(&json!({"engine": engine, "load_ms": again}))?;
    for tokens in TOKENS {
        for texts in TEXTS {
            say(&measure(&encoder, &engine, texts, tokens)?)?;
        }
    }
    Ok(())
}

fn load(dir: &Path, device: Device) -> Result<(EncoderHandle, f64), Box<dyn Error>> {
    let max_batch_tokens = Some(32_768);
    let config = EncoderConfig { device, max_batch_tokens, ..EncoderConfig::default() };
    let started = Instant::now();
    let encoder = EncoderHandle::spawn(dir, &config)?;
    Ok((encoder, millis(started.elapsed())))
}

fn measure(
    encoder: &EncoderHandle,
    engine: &str,
    texts: usize,
    tokens: usize,
) -> Result<Value, Box<dyn Error>> {
    let batch: Vec<String> = (0..texts).map(|text| text_of(text, tokens)).collect();
    for _ in 0..5 {
        let seen = encoder.embed_blocking(batch.clone())?[0].tokens;
        assert_eq!(seen as usize, tokens, "every word is one token");
    }
    let before = encoder.stats();
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < MEASURE_FOR {
        let input = batch.clone();
        let call = Instant::now();
        encoder.embed_blocking(input)?;
        times.push(call.elapsed());
    }
    let busy = (encoder.stats().busy - before.busy).as_secs_f64();
    let total: Duration = times.iter().sum();
    let done = (times.len() * texts) as f64;
    times.sort_unstable();
    Ok(json!({
        "engine": engine, "texts": texts, "tokens": tokens,
        "p50_ms": millis(times[times.len() / 2]),
        "texts_per_s": done / total.as_secs_f64(),
        "forward_texts_per_s": done / busy,
    }))
}

/// Makes a text of `tokens` tokens, the two special ones included.
fn text_of(index: usize, tokens: usize) -> String {
    let words: Vec<&str> = (0..tokens - 2).map(|i| WORDS[(i * 3 + index) % WORDS.len()]).collect();
    words.join(" ")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn say(line: &Value) -> Result<(), Box<dyn Error>> {
    Ok(writeln!(stdout(), "{line}")?)
}
