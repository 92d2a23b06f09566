//! `toolgate gateway`: one MCP server in the place of many.

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};

/// Serve many MCP servers behind one URL, or look after such a gateway.
#[derive(Debug, Args)]
pub(super) struct Gateway {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {}

pub(super) fn run(gateway: Gateway) -> Result<Exit, Failure> {
    match gateway.action {
        Some(action) => match action {},
        None => Err(Failure::usage("the gateway has no commands yet")),
    }
}
