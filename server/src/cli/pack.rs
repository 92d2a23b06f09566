//! `toolgate pack`: files of typical user requests for the tools of an MCP server. No server is needed.

mod build;
mod embed;
mod eval;
mod files;
mod lint;
mod list;

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  toolgate pack build mine.json --endpoint http://127.0.0.1:11434 --model qwen3 --output packs/mine.yaml
  toolgate pack lint packs/mine.yaml --catalog mine.json
  toolgate pack list --catalog servers/ --directory packs/
  toolgate pack eval --catalog servers/
  toolgate pack embed --directory packs/

A pack has, for the tools of an MCP server, requests of people who want them. Where packs.enabled is true, tools are
found by them as well as by their summaries. Packs of your own go into packs.directory.";

/// Write, check, measure and list packs: what people say who want the tools of an MCP server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PackCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Build(Box<build::Build>),
    Embed(embed::Embed),
    Eval(eval::Eval),
    Lint(lint::Lint),
    List(list::List),
}

pub(super) async fn run(command: PackCommand) -> Result<Exit, Failure> {
    match command.action {
        Action::Build(build) => build::run(*build).await,
        Action::Embed(embed) => embed::run(embed).await,
        Action::Eval(eval) => eval::run(eval).await,
        Action::Lint(lint) => lint::run(lint).await,
        Action::List(list) => list::run(&list),
    }
}
