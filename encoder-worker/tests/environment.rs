//! The environment in which a worker's process loads the driver of GPUs. The test has no harness: a worker changes its
//! environment before it has a second thread, and a harness has threads.
#![expect(clippy::print_stdout, reason = "one process tells the other")]

use std::process::Command;

use clap::Parser;
use toolgate_encoder::MODULE_LOADING;
use toolgate_encoder_worker::WorkerArguments;

/// Variable that makes a process the worker.
const IS_WORKER: &str = "TOOLGATE_TEST_IS_WORKER";

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    worker: WorkerArguments,
}

fn main() {
    if std::env::var_os(IS_WORKER).is_some() {
        run_worker();
        return;
    }
    assert_eq!(loading_in_worker(None), "EAGER");
    assert_eq!(loading_in_worker(Some("LAZY")), "LAZY", "the operator's choice stays");
}

/// Runs a worker that ends because it has no model, and prints how its process has kernels loaded.
fn run_worker() {
    let line =
        "worker --model-dir /nowhere --device cpu --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0";
    let arguments = Line::try_parse_from(line.split(' ')).expect("a good line").worker;
    let _ended = toolgate_encoder_worker::main(arguments);
    println!("{}", std::env::var(MODULE_LOADING).unwrap_or_default());
}

/// Returns how a worker's process has kernels loaded when it is started with this value.
fn loading_in_worker(given: Option<&str>) -> String {
    let mut worker = Command::new(std::env::current_exe().expect("this program"));
    worker.env(IS_WORKER, "1").env_remove(MODULE_LOADING);
    worker.envs(given.map(|value| (MODULE_LOADING, value)));
    let output = worker.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.lines().last().unwrap_or_default().to_owned()
}
