//! `toolgate doctor`: checks everything that a server needs, and says how to fix problems.

mod check;
mod machine;
mod model;
mod ports;
mod security;
mod shared_store;
mod store;

use clap::Args;
use serde_json::json;

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::output;
use check::{Check, Status};
use toolgate_config::Config;

const EXAMPLES: &str = "\
Examples:
  toolgate doctor
  toolgate doctor --config toolgate.toml --json

Exit code 1 when something is wrong that keeps a server from starting.";

/// Find out what a server would lack here.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(doctor: Doctor) -> Result<Exit, Failure> {
    let checks = examine(&doctor.config).await;
    let is_well = checks.iter().all(|check| check.status != Status::Fail);
    if doctor.json {
        let list: Vec<_> = checks.iter().map(Check::as_json).collect();
        output::print_json(&json!({ "ok": is_well, "checks": list }))?;
    } else {
        let text: String = checks.iter().map(Check::line).collect();
        output::print(&text)?;
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

async fn examine(arguments: &ConfigArguments) -> Vec<Check> {
    let mut checks = vec![machine::versions(), machine::processor()];
    match arguments.load(Vec::new()) {
        Ok(parsed) => {
            checks.push(Check::ok("configuration", "good"));
            checks.extend(Box::pin(examine_with(parsed.config)).await);
        }
        Err(failure) => checks.push(Check::fail("configuration", failure.message()).advice(
            "mend it; `toolgate config example` shows every key. The rest was not checked.",
        )),
    }
    checks
}

async fn examine_with(config: Config) -> Vec<Check> {
    let mut checks = ports::check(&config.server).await;
    match &config.store.shared {
        Some(shared) => checks.push(shared_store::check(shared).await),
        None => checks.extend(store::check_database(&config.store.path).await),
    }
    let on_disk = tokio::task::spawn_blocking(move || {
        let mut checks = vec![model::check(&config.encoder)];
        checks.extend(security::check(&config));
        checks.extend(store::check(&config.store.path));
        checks.push(store::check_key(&config.handle.key));
        checks
    });
    match on_disk.await {
        Ok(found) => checks.extend(found),
        Err(error) => checks.push(Check::fail("files", format!("the checks broke off: {error}"))),
    }
    checks
}
