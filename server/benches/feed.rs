//! Measures how servers feed a worker: texts a second, the time of a call and the CPU time of a text, by texts a call and
//! servers. The pools of the servers and the worker are the product's own code, in one process, over loopback. The
//! **device is modelled**: it sleeps for as long as a GPU is estimated to take, and knows no language.
//!
//! A device that calls itself a CPU gets each request by itself, and is the baseline of one that calls itself a GPU,
//! whose requests are joined. Both take the same time. Callers are of sixteen tenants.
//!
//! `cargo bench --workspace --bench feed`; the encoder's model must be there (`toolgate model fetch`).
#![expect(clippy::print_stdout, reason = "a table")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use toolgate_app::telemetry::Metrics;
use toolgate_config::{Gpus, PoolConfig, WorkerAddress};
use toolgate_encoder::{Backend, BackendError, Batch, BatchLimits, EncoderConfig, EncoderHandle};
use toolgate_encoder_worker::serve_encoder;
use toolgate_model_hub::default_model_dir;
use toolgate_routing::encoder::pool::Reference;
use toolgate_routing::encoder::{Encoder, EncoderPool, Flow, Prefixes};

/// Time that the modelled device takes for a batch, whatever is in it: 116 launches of kernels at 2.2 µs each.
const BATCH: Duration = Duration::from_micros(255);

/// Time that it takes for a token: an estimate for a six-layer encoder on an H100.
const TOKEN: Duration = Duration::from_nanos(130);

/// Most tokens of a batch, as on a GPU.
const BATCH_TOKENS: usize = 16_384;

const DIMENSIONS: usize = 384;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);

/// Time of the modelled device, summed over its batches.
#[derive(Default)]
struct DeviceTime {
    nanos: AtomicU64,
    batches: AtomicU64,
}

struct Modelled {
    name: &'static str,
    time: Option<Arc<DeviceTime>>,
}

impl Backend for Modelled {
    fn name(&self) -> &str {
        self.name
    }

    fn batch_tokens(&self) -> usize {
        BATCH_TOKENS
    }

    fn prepare(&mut self, _: BatchLimits) -> Result<(), BackendError> {
        Ok(())
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        if let Some(time) = &self.time {
            let takes = BATCH + TOKEN * u32::try_from(batch.tokens()).unwrap_or(u32::MAX);
            thread::sleep(takes);
            time.nanos.fetch_add(takes.as_nanos() as u64, Ordering::Relaxed);
            time.batches.fetch_add(1, Ordering::Relaxed);
        }
        let texts = batch.bounds().windows(2);
        Ok(texts.map(|ends| vector(&batch.token_ids()[ends[0]..ends[1]])).collect())
    }
}

/// Returns a unit vector that tells texts apart by their tokens.
fn vector(tokens: &[u32]) -> Vec<f32> {
    let mut state = tokens.iter().fold(1_u64, |state, token| {
        (state ^ u64::from(*token)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
    });
    let mut vector: Vec<f32> = (0..DIMENSIONS)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn encoder(name: &'static str, time: Option<Arc<DeviceTime>>) -> EncoderHandle {
    let dir = default_model_dir().expect("a home directory");
    EncoderHandle::spawn_around(&dir, &EncoderConfig::default(), |_| {
        Box::new(Modelled { name, time })
    })
    .expect("the model is there: toolgate model fetch")
}

/// One setting of the benchmark.
struct Setting {
    device: &'static str,
    servers: usize,
    texts: usize,
    callers: usize,
}

/// Outcome of one setting.
struct Measured {
    texts: u64,
    seconds: f64,
    median_ms: f64,
    cpu_micros: f64,
    device: Arc<DeviceTime>,
}

/// Counts of the callers. They count nothing before `from`.
struct Counted {
    from: Instant,
    until: Instant,
    texts: AtomicU64,
    millis: Mutex<Vec<f64>>,
}

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime")
}

/// Starts a worker over the device, on threads of its own, and returns its address.
fn start_worker(runtime: &Runtime, encoder: EncoderHandle, stop: CancellationToken) -> String {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    runtime.spawn(async move { serve_encoder(listener, encoder, stop).await.expect("serving") });
    address
}

async fn pool(address: &str, reference: &EncoderHandle) -> Arc<EncoderPool> {
    let config = PoolConfig {
        workers: vec![WorkerAddress::One(address.to_owned())],
        gpus: Gpus::First(0),
        local: Vec::new(),
        connections: None,
        attempt_timeout: Duration::from_secs(2),
        hedge: true,
        health_interval: Duration::from_millis(400),
        compare_one_in: 0,
    };
    let reference = Reference::of(reference, &Prefixes::default()).await.expect("a reference");
    let pool = EncoderPool::new(&config, reference, None, None, Metrics::default().encoder());
    while pool.workers_in_use() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Arc::new(pool)
}

/// Asks again and again, with texts that differ.
async fn ask(pool: Arc<EncoderPool>, caller: usize, texts: usize, counted: Arc<Counted>) {
    let flow = Flow::new(caller as u64 % 16 + 1);
    for number in 0.. {
        let began = Instant::now();
        if began >= counted.until {
            return;
        }
        let asked = (0..texts)
            .map(|text| format!("find the cheapest flight {caller} from Berlin {number} {text}"))
            .collect();
        let answer = pool.embed(asked, flow, None).await.expect("embedded");
        if began >= counted.from {
            counted.texts.fetch_add(answer.len() as u64, Ordering::Relaxed);
            counted.millis.lock().push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
}

/// Returns the CPU time of this process, by Linux's `/proc`.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // The times in user and system mode, in hundredths of a second.
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn measure(setting: &Setting, reference: &EncoderHandle) -> Measured {
    let device = Arc::new(DeviceTime::default());
    let stop = CancellationToken::new();
    let worker = runtime(2);
    let served = encoder(setting.device, Some(Arc::clone(&device)));
    let address = start_worker(&worker, served, stop.clone());
    let servers: Vec<Runtime> = (0..setting.servers).map(|_| runtime(2)).collect();
    let pools: Vec<_> =
        servers.iter().map(|server| server.block_on(pool(&address, reference))).collect();
    let began = Instant::now();
    let counted = Arc::new(Counted {
        from: began + WARM_UP,
        until: began + WARM_UP + MEASURED,
        texts: AtomicU64::new(0),
        millis: Mutex::default(),
    });
    let callers: Vec<_> = servers
        .iter()
        .zip(&pools)
        .flat_map(|(server, pool)| (0..setting.callers).map(move |caller| (server, pool, caller)))
        .map(|(server, pool, caller)| {
            let asking = ask(Arc::clone(pool), caller, setting.texts, Arc::clone(&counted));
            server.spawn(asking)
        })
        .collect();
    thread::sleep(WARM_UP);
    let cpu = cpu_seconds();
    device.nanos.store(0, Ordering::Relaxed);
    device.batches.store(0, Ordering::Relaxed);
    thread::sleep(MEASURED);
    let cpu = cpu_seconds() - cpu;
    for caller in callers {
        servers[0].block_on(caller).expect("a caller");
    }
    stop.cancel();
    let mut millis = std::mem::take(&mut *counted.millis.lock());
    millis.sort_by(f64::total_cmp);
    let texts = counted.texts.load(Ordering::Relaxed);
    let median_ms = millis.get(millis.len() / 2).copied().unwrap_or(f64::NAN);
    let seconds = MEASURED.as_secs_f64();
    Measured { texts, seconds, median_ms, cpu_micros: cpu * 1e6 / texts as f64, device }
}

fn main() {
    let reference = encoder("reference", None);
    println!("The device is modelled: {BATCH:?} a batch and {TOKEN:?} a token.\n");
    println!(
        "| requests | servers | texts a call | callers | texts/s | p50 ms | CPU us a text | texts a batch | device busy |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for servers in [1, 2] {
        for (texts, callers) in [(1, 1), (1, 16), (1, 200), (8, 64), (64, 16)] {
            for (requests, device) in
                [("one by one", "cpu-modelled"), ("joined", "cuda:0-modelled")]
            {
                let setting = Setting { device, servers, texts, callers };
                let measured = measure(&setting, &reference);
                let busy = measured.device.nanos.load(Ordering::Relaxed) as f64 / 1e9;
                let batches = measured.device.batches.load(Ordering::Relaxed).max(1);
                println!(
                    "| {requests} | {servers} | {texts} | {} | {:.0} | {:.2} | {:.1} | {:.1} | {:.0}% |",
                    callers * servers,
                    measured.texts as f64 / measured.seconds,
                    measured.median_ms,
                    measured.cpu_micros,
                    measured.texts as f64 / batches as f64,
                    busy / measured.seconds * 100.0,
                );
            }
        }
    }
}
