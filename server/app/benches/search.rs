//! Search times by path, size and filter: the figures behind `GRAPH_ABOVE`, `EXACT_SELECTIVITY` and the size from which
//! byte codes are kept. Recall is printed next to the times of the graph. The baseline is usearch's own exact search.
#![allow(missing_docs, reason = "criterion's macros generate public items")]
#![allow(clippy::print_stdout, reason = "recall and build times have no other place to go")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime,
};
use fixedbitset::FixedBitSet;
use samples::Samples;
use toolgate_routing::shard::{IndexOptions, VectorIndex};

#[path = "../../routing/src/shard/vectors/samples.rs"]
mod samples;

const WIDTH: usize = 384;
const QUERIES: usize = 64;
const K: usize = 10;
const SIZES: [usize; 5] = [100, 1_000, 10_000, 50_000, 100_000];
/// Shares of allowed slots in percent.
const SHARES: [usize; 5] = [100, 1, 10, 30, 50];

/// Index options that force each path through the index.
const PATHS: [(&str, IndexOptions); 3] = {
    let rows = IndexOptions {
        graph_above: usize::MAX,
        codes_above: usize::MAX,
        exact_selectivity: 0.0,
        expansion: 128,
    };
    let codes = IndexOptions { codes_above: 0, ..rows };
    [("rows", rows), ("codes", codes), ("graph", IndexOptions { graph_above: 0, ..codes })]
};

fn search(criterion: &mut Criterion) {
    // `cargo test --all-targets` runs benches too, unoptimised. They then run once, on small data.
    let largest = if cfg!(debug_assertions) { 1_000 } else { usize::MAX };
    for size in SIZES.into_iter().filter(|size| *size <= largest) {
        let mut rows = Samples::new(1, WIDTH).clustered_rows(size + QUERIES, size / 20 + 1);
        let queries = rows.split_off(size * WIDTH);
        let mut group = criterion.benchmark_group(format!("{size}"));
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(500));
        for (path, options) in PATHS {
            let start = Instant::now();
            let index = VectorIndex::build_with(WIDTH, rows.clone(), &options).expect("unit rows");
            println!(
                "{size}/{path}: built in {:?}, {} KiB",
                start.elapsed(),
                index.memory_bytes() >> 10
            );
            for share in SHARES {
                measure(&mut group, path, &index, &queries, share);
            }
        }
        usearch_exact(&mut group, &rows, &queries);
        group.finish();
    }
}

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    path: &str,
    index: &VectorIndex,
    queries: &[f32],
    share: usize,
) {
    let mut samples = Samples::new(2, WIDTH);
    let bits: FixedBitSet = (0..index.len()).filter(|_| samples.below(100) < share).collect();
    let allowed = (share < 100).then_some(&bits);
    let mut turns = queries.chunks_exact(WIDTH).cycle();
    group.bench_function(format!("{path}/{share}%"), |bencher| {
        bencher.iter(|| index.search(turns.next().expect("a cycle"), black_box(K), allowed));
    });
    if path == "graph" {
        println!("recall@{K} {:.4}", recall(index, queries, allowed));
    }
}

/// Returns the share of the exact best results, by the overlap of every slot, that the search finds.
fn recall(index: &VectorIndex, queries: &[f32], allowed: Option<&FixedBitSet>) -> f64 {
    let mut found = 0;
    let mut wanted = 0;
    for query in queries.chunks_exact(WIDTH) {
        let mut all: Vec<(u32, f32)> = (0..index.len() as u32)
            .filter(|slot| allowed.is_none_or(|bits| bits.contains(*slot as usize)))
            .map(|slot| (slot, index.overlap(query, slot).expect("a known slot")))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(K);
        let hits = index.search(query, K, allowed).expect("a unit query");
        wanted += all.len();
        found += all.iter().filter(|best| hits.iter().any(|hit| hit.slot == best.0)).count();
    }
    found as f64 / f64::from(wanted.max(1) as u32)
}

fn usearch_exact(group: &mut BenchmarkGroup<'_, WallTime>, rows: &[f32], queries: &[f32]) {
    let index = usearch::Index::new(&usearch::IndexOptions {
        dimensions: WIDTH,
        metric: usearch::MetricKind::IP,
        quantization: usearch::ScalarKind::F32,
        // The exact search never uses the links, so the cheapest graph is enough.
        connectivity: 2,
        expansion_add: 1,
        ..Default::default()
    })
    .expect("usearch makes an index");
    index.reserve(rows.len() / WIDTH).expect("there is memory");
    for (slot, row) in rows.chunks_exact(WIDTH).enumerate() {
        index.add(slot as u64, row).expect("reserved");
    }
    let mut turns = queries.chunks_exact(WIDTH).cycle();
    group.bench_function("usearch exact/100%", |bencher| {
        bencher.iter(|| index.exact_search(turns.next().expect("a cycle"), black_box(K)));
    });
}

criterion_group!(benches, search);
criterion_main!(benches);
