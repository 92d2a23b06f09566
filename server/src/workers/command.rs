//! How a worker process is started: which program, with which arguments.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_encoder::{AdapterChoice, Device};
use toolgate_telemetry::TraceOptions;

/// The worker's own program, when it lies beside this one.
const SIBLING: &str = "toolgate-encoder-worker";

/// The subcommand that makes this program a worker.
const SUBCOMMAND: &str = "encoder-worker";

/// Tokens of one batch on a GPU, which wants thousands; a CPU's batches are the worker's own default.
const GPU_BATCH_TOKENS: &str = "16384";

/// How long a worker may finish what it has to do; nothing new reaches it then.
const DRAIN: &str = "2s";

/// A program that serves `EncoderService`. It logs JSON to standard error, where it also says where it
/// listens, and ends on SIGTERM or when its standard input does.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// What the worker is called in logs and metrics.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl WorkerCommand {
    /// A worker on `device` with the model in `model_dir` and `adapter`, on a loopback port that it chooses: the worker's
    /// program beside this one, or this one.
    ///
    /// # Errors
    /// Where this program lies can't be found out.
    pub fn on(device: Device, model_dir: &Path, adapter: &AdapterChoice) -> io::Result<Self> {
        let this = std::env::current_exe()?;
        let sibling = this.with_file_name(SIBLING).with_extension(std::env::consts::EXE_EXTENSION);
        let (program, mut arguments) =
            if sibling.is_file() { (sibling, Vec::new()) } else { (this, vec![SUBCOMMAND.into()]) };
        let name = device.to_string();
        let free_port = "127.0.0.1:0";
        let options = [
            ("--device", name.as_str()),
            ("--listen", free_port),
            ("--admin-listen", free_port),
            ("--drain", DRAIN),
            ("--log-format", "json"),
            ("--log-level", "info"),
        ];
        let on_gpu = matches!(device, Device::Cuda(_));
        let batch = on_gpu.then_some(("--max-batch-tokens", GPU_BATCH_TOKENS));
        for (flag, value) in options.into_iter().chain(batch) {
            arguments.extend([flag.into(), value.into()]);
        }
        arguments.extend(["--adapter".into(), adapter.as_path().into()]);
        arguments.extend(["--model-dir".into(), model_dir.into(), "--until-stdin-ends".into()]);
        Ok(Self { name, program, arguments })
    }

    /// The same worker, whose spans go where this process' go. It decides by itself for calls that nobody
    /// decided about, as this process does.
    #[must_use]
    pub fn with_spans(mut self, spans: Option<&TraceOptions>) -> Self {
        let Some(spans) = spans else { return self };
        let options = [
            ("--telemetry-otlp-endpoint", spans.endpoint.clone()),
            ("--telemetry-sample-ratio", spans.sample_ratio.to_string()),
            ("--telemetry-timeout", format!("{}ms", spans.timeout.as_millis())),
        ];
        for (flag, value) in options {
            self.arguments.extend([flag.into(), value.into()]);
        }
        self
    }
}
