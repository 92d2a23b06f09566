//! How a worker process is started: which program, with which arguments.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_encoder_worker::Device;

/// The worker's own program, when it lies beside this one.
const SIBLING: &str = "toolgate-encoder-worker";

/// The subcommand that makes this program a worker.
const SUBCOMMAND: &str = "encoder-worker";

/// A program that serves `EncoderService`. It says on standard output where it listens, and ends on
/// SIGTERM.
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
    /// A worker on `device` with the model in `model_dir`, on a loopback port that it chooses: the worker's
    /// program beside this one, or this one.
    ///
    /// # Errors
    /// Where this program lies can't be found out.
    pub fn on(device: Device, model_dir: &Path) -> io::Result<Self> {
        let this = std::env::current_exe()?;
        let sibling = this.with_file_name(SIBLING).with_extension(std::env::consts::EXE_EXTENSION);
        let (program, mut arguments) =
            if sibling.is_file() { (sibling, Vec::new()) } else { (this, vec![SUBCOMMAND.into()]) };
        let device = device.to_string();
        for (flag, value) in [("--device", device.as_str()), ("--listen", "127.0.0.1:0")] {
            arguments.extend([flag.into(), value.into()]);
        }
        arguments.extend(["--model-dir".into(), model_dir.into()]);
        Ok(Self { name: device, program, arguments })
    }
}
