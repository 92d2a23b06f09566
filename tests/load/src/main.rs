//! Load generator for Route calls in an open loop: callers do not wait for each other. The latency of a call counts
//! from its planned send time. A server that stalls therefore can't hide it by holding up its callers (coordinated
//! omission).

mod arguments;
mod arrivals;
mod caller;
mod intents;
mod outcome;
mod record;
mod run;
mod targets;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    match runtime.block_on(run::run(&arguments)) {
        Ok(report) => print(&report),
        Err(problem) => failed(&problem),
    }
}

#[expect(clippy::print_stdout, reason = "the report")]
fn print(report: &record::Report) -> ExitCode {
    match serde_json::to_string_pretty(report) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "a command's failure")]
fn failed(problem: &str) -> ExitCode {
    eprintln!("error: {problem}");
    ExitCode::FAILURE
}
