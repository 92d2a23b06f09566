//! `toolgate catalog`: checks the texts of tools for attacks on a model, before and after registration.

mod approve;
mod diff;
mod difference;
mod quarantine;
pub(super) mod read;
mod scan;

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  toolgate catalog scan git.json
  toolgate catalog scan servers/ --tier untrusted --json
  toolgate catalog diff before/ after/
  toolgate catalog quarantine list
  toolgate catalog approve github create_issue@9f2c41d0a7be";

/// Review what MCP servers say of their tools, and approve what waits for it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Catalog {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Scan(scan::Scan),
    Diff(diff::Diff),
    Quarantine(quarantine::Quarantine),
    Approve(approve::Approve),
}

pub(super) async fn run(catalog: Catalog) -> Result<Exit, Failure> {
    match catalog.command {
        Command::Scan(scan) => scan::run(&scan),
        Command::Diff(diff) => diff::run(&diff),
        Command::Quarantine(quarantine) => quarantine::run(quarantine).await,
        Command::Approve(approve) => approve::run(approve).await,
    }
}
