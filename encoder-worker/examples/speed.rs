//! One line of speed figures per number format: p50 of one text at a time, throughput of batches of 32,
//! and the least cosine to f32. `speed FORMAT THREADS TEXTS_FILE`
#![allow(clippy::print_stdout)]
use std::num::NonZeroUsize;
use std::time::Instant;
use toolgate_encoder_worker::model_fetch::default_model_dir;
use toolgate_encoder_worker::{Batch, Device, EncoderConfig, LoadedModel};

fn main() {
    let mut args = std::env::args().skip(1);
    let format: toolgate_encoder_worker::NumberFormat =
        args.next().expect("format").parse().expect("format");
    let threads = args.next().and_then(|t| t.parse().ok()).and_then(NonZeroUsize::new);
    let config = EncoderConfig { device: Device::Cpu, format, threads, ..EncoderConfig::default() };
    let mut m = LoadedModel::load(&default_model_dir().expect("dir"), &config).expect("loads");
    let short = "find the cheapest flight from Berlin to Lisbon next Friday evening";
    let sent = "Lists the open issues of a repository, newest first, with title, labels, assignee and the date of the last comment. ";
    let texts = [short.to_owned(), sent.repeat(2), sent.repeat(8)];
    for t in &texts {
        let ids = m.tokenize(t).expect("tokens");
        let mut b = Batch::default();
        b.push(&ids);
        let mut ts = vec![];
        for _ in 0..if ids.len() < 100 { 600 } else { 150 } {
            let s = Instant::now();
            std::hint::black_box(m.embed(&b).expect("ok"));
            ts.push(s.elapsed().as_secs_f64() * 1e3);
        }
        ts.sort_by(f64::total_cmp);
        println!(
            "{format} {} tokens: p50 {:.3} ms p10 {:.3} p90 {:.3}",
            ids.len(),
            ts[ts.len() / 2],
            ts[ts.len() / 10],
            ts[ts.len() * 9 / 10]
        );
    }
    for (name, mix) in [("short", false), ("mixed", true)] {
        let mut b = Batch::default();
        for i in 0..32 {
            let t = if mix { &texts[[0, 0, 1, 0, 2, 0, 1, 0][i % 8]] } else { &texts[0] };
            b.push(&m.tokenize(&format!("{t} {i}")).expect("tokens"));
        }
        let mut best = 0f64;
        let mut all = vec![];
        for _ in 0..20 {
            let s = Instant::now();
            std::hint::black_box(m.embed(&b).expect("ok"));
            let r = 32.0 / s.elapsed().as_secs_f64();
            best = best.max(r);
            all.push(r);
        }
        all.sort_by(f64::total_cmp);
        println!(
            "{format} {name} batch 32 ({} tokens): median {:.0} best {best:.0} texts/s",
            b.tokens(),
            all[10]
        );
    }
    let s = Instant::now();
    for _ in 0..2000 {
        std::hint::black_box(m.tokenize(short).expect("t"));
    }
    println!("tokenize short {:.2} us", s.elapsed().as_secs_f64() * 1e6 / 2000.0);
}
