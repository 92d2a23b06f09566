//! The worker's command line, for every binary that can be one.

mod spans;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolgate_telemetry::TraceOptions;

use super::config::{CanaryConfig, WorkerConfig};
use super::error::WorkerError;
use super::logging::{LogFormat, LogLevel};
use spans::SpanArguments;
use toolgate_encoder::AdapterChoice;
use toolgate_encoder::EncoderConfig;
use toolgate_encoder::{Device, NumberFormat};
use toolgate_model_hub::KnownModel;

/// What `--help` says after the options.
pub const HELP: &str = "\
Examples:
  --device cuda:0                                                  the first GPU
  --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --log-format json   on free ports, for a supervisor

The log event \"listening\" has the addresses in its fields grpc and admin; \"serving\" comes when the
encoder is warm. SIGTERM (or Ctrl-C) lets calls in progress finish; a second one ends the worker at once.

Exit codes:
  0    stopped by a signal, drained
  1    the gRPC transport or the runtime failed
  2    the command line makes no sense
  3    the model can't be loaded, or the device can't be used: a restart will not help
  4    an address can't be listened on
  5    the device became unfit: it answered the canary wrong or too late, after a minute or more in service
  6    the device is unfit: it failed its warm-up, or the canary within the first minute
  130  ended at once by a second signal";

/// Options of an encoder worker.
#[derive(Debug, Clone, Args)]
pub struct WorkerArguments {
    /// Where to serve gRPC; port 0 takes a free one.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_LISTEN",
        default_value = "127.0.0.1:7072",
        value_name = "ADDRESS:PORT"
    )]
    pub listen: SocketAddr,
    /// Where to serve /metrics, /healthz and /readyz; port 0 takes a free one.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_ADMIN_LISTEN",
        default_value = "127.0.0.1:7073",
        value_name = "ADDRESS:PORT"
    )]
    pub admin_listen: SocketAddr,
    /// What to run on: auto (the first GPU that works, else the CPU), cpu, cuda or cuda:N.
    #[arg(long, env = "TOOLGATE_WORKER_DEVICE", default_value = "auto", value_name = "DEVICE")]
    pub device: Device,
    /// How weights are kept and multiplied: auto (the fastest that is as good as f32), f32, bf16 or int8.
    #[arg(long, env = "TOOLGATE_WORKER_FORMAT", default_value = "auto", value_name = "FORMAT")]
    pub format: NumberFormat,
    /// What is merged into the weights: auto (the adapter for tools that comes with the program, if there is one for
    /// these weights), none (the model as it is), or an adapter's file.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_ADAPTER",
        default_value = "auto",
        value_name = "auto|none|FILE"
    )]
    pub adapter: AdapterChoice,
    /// The model, from the place where `toolgate model fetch --model NAME` puts it. Without it, the default one.
    #[arg(long, env = "TOOLGATE_WORKER_MODEL", value_name = "NAME", ignore_case = true)]
    pub model: Option<KnownModel>,
    /// Any other model directory. Not together with a model's name.
    #[arg(long, env = "TOOLGATE_MODEL_DIR", value_name = "DIR")]
    pub model_dir: Option<PathBuf>,
    /// CPU threads that one batch may use. Without it, one per core.
    #[arg(long, env = "TOOLGATE_WORKER_THREADS", value_name = "COUNT")]
    pub threads: Option<NonZeroUsize>,
    /// Calls that may wait or run at once; one more is refused with RESOURCE_EXHAUSTED.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_QUEUE_CAPACITY",
        default_value = "1024",
        value_name = "COUNT",
        value_parser = parse_queue_capacity
    )]
    pub queue_capacity: NonZeroUsize,
    /// Tokens that one batch holds at most. Larger batches use the device better; smaller ones let a short
    /// text pass a long one sooner. Without it, 16384 on a GPU and 256 on a CPU.
    #[arg(long, env = "TOOLGATE_WORKER_MAX_BATCH_TOKENS", value_name = "COUNT")]
    pub max_batch_tokens: Option<NonZeroUsize>,
    /// How long calls in progress may take to end once the worker is told to stop.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_DRAIN",
        default_value = "10s",
        value_parser = parse_duration,
        value_name = "DURATION"
    )]
    pub drain: Duration,
    /// Stop when standard input ends. A supervisor that holds the other end of a pipe takes its workers with
    /// it, however it ends itself.
    #[arg(long)]
    pub until_stdin_ends: bool,
    /// Print which GPUs work, and why others don't, as JSON, and end. `toolgate serve --gpu auto` asks this.
    #[arg(long)]
    pub find_gpus: bool,
    /// Pause between two runs of the canary: fixed texts whose embeddings are known. A wrong answer, or
    /// none in time, ends the worker with exit code 5 or 6.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_CANARY_INTERVAL",
        default_value = "2s",
        value_parser = parse_duration,
        value_name = "DURATION"
    )]
    pub canary_interval: Duration,
    /// How long one run of the canary may take.
    #[arg(
        long,
        env = "TOOLGATE_WORKER_CANARY_TIMEOUT",
        default_value = "2s",
        value_parser = parse_duration,
        value_name = "DURATION"
    )]
    pub canary_timeout: Duration,
    /// The least important log records.
    #[arg(long, env = "TOOLGATE_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub log_level: LogLevel,
    /// The form of log records.
    #[arg(long, env = "TOOLGATE_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
    #[command(flatten)]
    spans: SpanArguments,
}

impl WorkerArguments {
    /// The configuration that they amount to.
    ///
    /// # Errors
    /// There is no model directory to assume, or a model's name beside it.
    pub fn config(self) -> Result<WorkerConfig, WorkerError> {
        let model_dir =
            self.directory().map_err(|problem| WorkerError::Arguments(problem.into()))?;
        Ok(WorkerConfig {
            listen: self.listen,
            admin_listen: self.admin_listen,
            model_dir,
            encoder: EncoderConfig {
                queue_capacity: self.queue_capacity.get(),
                max_batch_tokens: self.max_batch_tokens.map(NonZeroUsize::get),
                threads: self.threads,
                device: self.device,
                format: self.format,
                adapter: self.adapter,
            },
            drain: self.drain,
            until_stdin_ends: self.until_stdin_ends,
            canary: CanaryConfig { interval: self.canary_interval, timeout: self.canary_timeout },
        })
    }
}

impl WorkerArguments {
    /// Where spans go; `None` for nowhere.
    #[must_use]
    pub fn spans(&self) -> Option<TraceOptions> {
        self.spans.options()
    }

    fn directory(&self) -> Result<PathBuf, &'static str> {
        let named = self.model_dir.clone().filter(|dir| !dir.as_os_str().is_empty());
        match (named, self.model) {
            (Some(_), Some(_)) => Err("--model (TOOLGATE_WORKER_MODEL) and --model-dir \
                                       (TOOLGATE_MODEL_DIR) are both set: keep one of them"),
            (Some(directory), None) => Ok(directory),
            (None, model) => {
                let directory = model.unwrap_or_default().directory();
                directory.ok_or("there is no home directory: set --model-dir")
            }
        }
    }
}

/// A whole number of `ms`, `s` or `m`, at least one millisecond.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err("write a whole number with ms, s or m, such as 500ms".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it does not begin with a number".to_owned())?;
    let whole = number.checked_mul(millis).filter(|whole| *whole > 0);
    whole.map(Duration::from_millis).ok_or_else(|| "it is out of range".into())
}

/// Places are allocated at start.
fn parse_queue_capacity(text: &str) -> Result<NonZeroUsize, String> {
    const MOST: usize = 1_000_000;
    let capacity = text.parse::<NonZeroUsize>().ok().filter(|capacity| capacity.get() <= MOST);
    capacity.ok_or_else(|| format!("expected 1 to {MOST}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        worker: WorkerArguments,
    }

    #[test]
    fn a_line_becomes_a_configuration() {
        let line = "worker --device cuda:1 --format bf16 --model-dir m --drain 3s --threads 2 \
                    --queue-capacity 7 --max-batch-tokens 9 --canary-interval 500ms";
        let parsed = Line::try_parse_from(line.split_whitespace()).expect("a good line");
        let config = parsed.worker.config().expect("it makes sense");
        assert_eq!(config.encoder.device, Device::Cuda(1));
        assert_eq!(config.encoder.format, NumberFormat::Bf16);
        assert_eq!(config.encoder.queue_capacity, 7);
        assert_eq!(config.encoder.max_batch_tokens, Some(9));
        assert_eq!(config.encoder.threads.map(NonZeroUsize::get), Some(2));
        assert_eq!(config.drain, Duration::from_secs(3));
        assert_eq!(config.canary.interval, Duration::from_millis(500));
        assert_eq!(config.model_dir, PathBuf::from("m"));
    }

    #[test]
    fn batches_follow_the_device_unless_a_number_is_given() {
        let parsed = Line::try_parse_from(["worker", "--model-dir", "m"]).expect("a good line");
        let config = parsed.worker.config().expect("it makes sense");
        assert_eq!(config.encoder.max_batch_tokens, None);
    }

    #[test]
    fn a_model_is_named_or_a_directory() {
        let config = |line: &str| {
            let parsed = Line::try_parse_from(line.split_whitespace()).expect("a good line");
            parsed.worker.config()
        };
        let config_of = |line| config(line).expect("it makes sense").model_dir;
        let named = config_of("worker --model Multilingual-E5-small");
        assert!(named.ends_with("toolgate/models/multilingual-e5-small"), "{}", named.display());
        let both = config("worker --model multilingual-e5-small --model-dir m");
        let text = both.expect_err("two models").to_string();
        assert!(text.contains("keep one of them"), "{text}");
        let error = Line::try_parse_from(["worker", "--model", "e5"]).expect_err("no such model");
        for name in KnownModel::NAMES {
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn bad_lines_are_refused() {
        for line in [
            "worker --device gpu",
            "worker --format fp16",
            "worker --drain 0s",
            "worker --drain 5",
            "worker --drain 99999999999999999999s",
            "worker --queue-capacity 0",
            "worker --listen here",
        ] {
            assert!(Line::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
