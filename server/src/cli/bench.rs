//! `toolgate bench`: benchmarks of the product, run in this process.

mod conversation;
mod memory;
mod poison;
mod prices;
mod tax;

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  toolgate bench tax
  toolgate bench tax --catalog tests/data/servers --queries tests/data/intents/tax.jsonl
  toolgate bench conversation --catalog tests/data/servers --queries tests/data/conversations/held-out.jsonl
  toolgate bench memory --catalog catalog.json --queries queries.jsonl
  toolgate bench poison --catalog servers/
  toolgate bench prices
  toolgate bench tax --help";

/// Measure what tools cost in prompts by a published benchmark and in whole conversations, what remembered calls are worth,
/// or what a scan finds; show the rules by which prompts are priced.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Bench {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tax(tax::Tax),
    Conversation(conversation::Conversation),
    Memory(memory::Memory),
    Poison(poison::Poison),
    Prices(prices::Prices),
}

pub(super) async fn run(bench: Bench) -> Result<Exit, Failure> {
    match bench.command {
        Command::Tax(tax) => tax::run(tax).await,
        Command::Conversation(conversation) => conversation::run(conversation).await,
        Command::Memory(memory) => memory::run(memory).await,
        Command::Poison(poison) => poison::run(poison).await,
        Command::Prices(prices) => prices::run(&prices),
    }
}
