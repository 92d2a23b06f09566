//! What a worker is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_encoder::EncoderConfig;

/// Everything a worker needs to know.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Where gRPC is served; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where metrics and probes are served; port 0 takes a free one.
    pub admin_listen: SocketAddr,
    /// The model directory.
    pub model_dir: PathBuf,
    /// Device, number format, queue and batches.
    pub encoder: EncoderConfig,
    /// How long calls in progress may take to end once the worker is told to stop.
    pub drain: Duration,
    /// Whether the end of standard input stops the worker, as a signal does.
    pub until_stdin_ends: bool,
    /// How the device is watched.
    pub canary: CanaryConfig,
}

/// When the canary texts are embedded.
#[derive(Debug, Clone, Copy)]
pub struct CanaryConfig {
    /// Time from one run's end to the next one's begin.
    pub interval: Duration,
    /// How long a run may take.
    pub timeout: Duration,
}
