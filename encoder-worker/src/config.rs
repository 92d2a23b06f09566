//! Configuration of a worker.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_encoder::EncoderConfig;

/// Complete configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Address of the gRPC port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the port for metrics and probes; port 0 takes a free one.
    pub admin_listen: SocketAddr,
    /// The model directory.
    pub model_dir: PathBuf,
    /// Device, number format, queue and batches.
    pub encoder: EncoderConfig,
    /// Time that calls in progress may take after a stop signal.
    pub drain: Duration,
    /// True if the end of standard input stops the worker, as a signal does.
    pub until_stdin_ends: bool,
    /// Supervision of the device.
    pub canary: CanaryConfig,
}

/// Timing of the canary runs.
#[derive(Debug, Clone, Copy)]
pub struct CanaryConfig {
    /// Time from the end of one run to the beginning of the next.
    pub interval: Duration,
    /// Longest time for one run.
    pub timeout: Duration,
}
