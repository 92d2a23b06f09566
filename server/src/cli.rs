//! The `toolgate` command line. Each subcommand has a file of its own; shared code lies beside them. It talks to a
//! server through the client library only. Results go to stdout, everything else to stderr.

mod arguments;
mod bench;
mod calibrate;
mod catalog;
mod completions;
mod config;
mod core_files;
mod credentials;
mod doctor;
mod documents;
mod embedding;
mod eval;
mod failure;
mod files;
mod gate;
mod gateway;
mod json;
mod key;
mod language_model;
mod lint;
mod llm;
mod memory;
mod missing;
mod model;
mod names;
mod output;
mod pack;
mod policy;
mod register;
mod route;
mod run;
mod running_gateway;
mod search;
mod serve;
mod servers;
mod small_catalog;
mod store;
mod summarize;
mod svg;
mod table;
mod text;
mod tls;
mod tokens;
mod tools;
mod usage;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use toolgate_encoder_worker as worker;

use arguments::{Arguments, Command};
use failure::{Exit, Failure};

/// Runs the command line of this process and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse()
        .unwrap_or_else(|error| missing::with_example(error, &Arguments::command()).exit());
    if let Command::EncoderWorker(arguments) = arguments.command {
        return worker::main(arguments.worker);
    }
    if let Command::Supervise = arguments.command {
        // It is a helper: nobody reads what it says.
        let _read = toolgate_upstream::supervise(std::io::stdin().lock());
        return ExitCode::SUCCESS;
    }
    if let Command::Sandboxed { arguments } = arguments.command {
        let error = toolgate_upstream::run_sandboxed(arguments);
        let mut words = std::io::stderr().lock();
        // Nobody may listen; the exit code says it as well.
        let _unheard = writeln!(words, "{error}");
        return ExitCode::FAILURE;
    }
    let outcome = run(arguments.command);
    let exit = outcome.unwrap_or_else(|failure| {
        failure.report();
        failure.exit()
    });
    exit.into()
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Register(register) => interruptible(register::run(register)),
        Command::Route(route) => interruptible(route::run(route)),
        Command::Search(search) => interruptible(search::run(search)),
        Command::Gate(gate) => interruptible(gate::run(gate)),
        Command::Gateway(gateway) => gateway::run(gateway),
        Command::Llm(llm) => llm::run(llm),
        Command::Run(run) => run::run(run),
        Command::Tools(tools) => interruptible(tools::run(tools)),
        Command::Servers(servers) => interruptible(servers::list(servers)),
        Command::Unregister(unregister) => interruptible(servers::remove(unregister)),
        Command::Usage(usage) => interruptible(usage::run(usage)),
        Command::Policy(policy) => interruptible(policy::run(policy)),
        Command::Catalog(catalog) => interruptible(catalog::run(catalog)),
        Command::Store(store) => interruptible(store::run(store)),
        Command::Memory(memory) => interruptible(memory::run(memory)),
        Command::Key(key) => interruptible(key::run(key)),
        Command::Model(model) => interruptible(model::run(model)),
        Command::Doctor(doctor) => interruptible(doctor::run(doctor)),
        Command::Eval(eval) => interruptible(eval::run(eval)),
        Command::Calibrate(calibrate) => interruptible(calibrate::run(calibrate)),
        Command::Bench(bench) => interruptible(bench::run(bench)),
        Command::Lint(lint) => interruptible(lint::run(lint)),
        Command::Summarize(summarize) => interruptible(summarize::run(summarize)),
        Command::Pack(pack) => interruptible(pack::run(pack)),
        Command::Tokens(tokens) => tokens::run(&tokens),
        Command::Config(config) => config::run(config),
        Command::Completions(completions) => {
            completions::run(&completions, &mut Arguments::command())
        }
        // `main` has run them already: the first has exit codes of its own.
        Command::EncoderWorker(_) | Command::Supervise | Command::Sandboxed { .. } => {
            Ok(Exit::Done)
        }
    }
}

/// Runs a command until it is done or Ctrl-C is pressed. Work on other threads is abandoned when the process ends; the
/// files that it writes survive the interruption.
fn interruptible(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = output::runtime()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = Box::pin(command) => outcome,
            Ok(()) = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    });
    runtime.shutdown_background();
    outcome
}
