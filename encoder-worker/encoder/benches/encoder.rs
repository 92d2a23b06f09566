//! Benchmark of embedding through the handle, tokenization and queue included: short, medium and long texts, one at a
//! time and 32 at a time. Throughput is in texts.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toolgate_encoder::{EncoderConfig, EncoderHandle};
use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};

const SHORT: &str = "find the cheapest flight from Berlin to Lisbon next Friday"; // 12 tokens
const SENTENCE: &str = "Lists the open issues of a repository, newest first, with title, labels, \
                        assignee and the date of the last comment. ";

fn texts(kind: &str, count: usize) -> Vec<String> {
    let text = match kind {
        "short" => SHORT.to_owned(),
        "medium" => SENTENCE.repeat(2),
        _ => SENTENCE.repeat(8),
    };
    (0..count).map(|i| format!("{text} {i}")).collect()
}

fn encoder(c: &mut Criterion) {
    let dir = default_model_dir().expect("a home directory");
    fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
    let encoder = EncoderHandle::spawn(&dir, &EncoderConfig::default()).expect("the model loads");
    let mut group = c.benchmark_group("encoder");
    group.sample_size(20);
    for kind in ["short", "medium", "long"] {
        for batch in [1, 32] {
            let texts = texts(kind, batch);
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(format!("{kind}/{batch}"), |b| {
                b.iter(|| black_box(encoder.embed_blocking(texts.clone()).expect("it embeds")));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, encoder);
criterion_main!(benches);
