//! The `toolgate-encoder-worker` binary. The library holds everything else.

use std::process::ExitCode;

use clap::Parser;
use toolgate_encoder_worker::{HELP, WorkerArguments};

/// Serve a sentence encoder over gRPC: one process for one device.
#[derive(Debug, Parser)]
#[command(name = "toolgate-encoder-worker", version, after_help = HELP, args_override_self = true)]
struct Arguments {
    #[command(flatten)]
    worker: WorkerArguments,
}

fn main() -> ExitCode {
    toolgate_encoder_worker::main(Arguments::parse().worker)
}
