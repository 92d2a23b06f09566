//! The command line that starts a worker process.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_encoder::{AdapterChoice, Device};
use toolgate_telemetry::TraceOptions;

/// File name of the worker's own program, which may lie beside this one.
const SIBLING: &str = "toolgate-encoder-worker";

/// Subcommand that makes this program a worker.
pub(super) const SUBCOMMAND: &str = "encoder-worker";

/// Time that a worker may take to finish its requests. No new ones reach it then.
const DRAIN: &str = "2s";

/// Variable that lists the GPUs that CUDA shows a process.
pub const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";

/// A program that serves `EncoderService`. It logs JSON to standard error, including its address, and ends on SIGTERM
/// or when its standard input closes.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// Name of the worker in logs and metrics.
    pub name: String,
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// The only GPU that the program sees, by its UUID; `None` for all that this process sees.
    pub gpu: Option<String>,
}

impl WorkerCommand {
    /// Returns the command for a worker on `device` with the model in `model_dir` and `adapter`. The worker chooses a
    /// loopback port. The program is the worker's own if it lies beside this one, or else this one. Where `visible`, the
    /// value of [`VISIBLE_GPUS`], lists GPUs by UUID, the worker sees its own alone.
    ///
    /// # Errors
    /// The path of this program can't be found out.
    pub fn on(
        device: Device,
        visible: Option<&str>,
        model_dir: &Path,
        adapter: &AdapterChoice,
    ) -> io::Result<Self> {
        let this = std::env::current_exe()?;
        let sibling = this.with_file_name(SIBLING).with_extension(std::env::consts::EXE_EXTENSION);
        let (program, mut arguments) =
            if sibling.is_file() { (sibling, Vec::new()) } else { (this, vec![SUBCOMMAND.into()]) };
        let name = device.to_string();
        let gpu = gpu_of(device, visible);
        // The only GPU that a process sees is its first.
        let seen = if gpu.is_some() { Device::Cuda(0).to_string() } else { name.clone() };
        let free_port = "127.0.0.1:0";
        let options = [
            ("--device", seen.as_str()),
            ("--listen", free_port),
            ("--admin-listen", free_port),
            ("--drain", DRAIN),
            ("--log-format", "json"),
            ("--log-level", "info"),
        ];
        for (flag, value) in options {
            arguments.extend([flag.into(), value.into()]);
        }
        arguments.extend(["--adapter".into(), adapter.as_path().into()]);
        arguments.extend(["--model-dir".into(), model_dir.into(), "--until-stdin-ends".into()]);
        Ok(Self { name, program, arguments, gpu })
    }

    /// Sends the worker's spans to the collector of this process. The worker samples calls without a sampling decision
    /// itself, as this process does.
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

/// Returns true if the text names a GPU, or a slice of one, by its UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    text.starts_with("GPU-") || text.starts_with("MIG-")
}

/// Returns the GPU at the place of `device` in `visible`, if it is listed by its UUID. Of the slices of a GPU (MIG) CUDA
/// shows a process the first one only, so that they can't be told apart by number.
fn gpu_of(device: Device, visible: Option<&str>) -> Option<String> {
    let Device::Cuda(index) = device else { return None };
    let listed = visible?.split(',').nth(index)?.trim();
    is_uuid(listed).then(|| listed.to_owned())
}
