//! `toolgate bench prices`: the rules by which benchmarks price prompts.

use clap::Args;

use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::table::{Column, render};
use toolgate_lab::prices::Prices as Rules;

const EXAMPLES: &str = "\
Examples:
  toolgate bench prices
  toolgate bench prices --api anthropic --model claude-haiku-4-5 --json

Prices are of a token of a prompt, in tokens of input that is neither read from the provider's cache nor written to it. A prefix is
cached from \"least\" tokens on, and its length is told in steps. The strategy auto is chosen by the same rules.";

/// Show the rules by which prompts are priced, of one model or of one for each API.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Prices {
    /// The model's API: anthropic, openai_chat, openai_responses or gemini.
    #[arg(long, value_name = "API", requires = "model")]
    api: Option<String>,
    /// The model; one that is not known has the rules of its API.
    #[arg(long, value_name = "NAME", requires = "api")]
    model: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Prices) -> Result<Exit, Failure> {
    let rules = match (&arguments.api, &arguments.model) {
        (Some(api), Some(model)) => {
            let unknown = || Failure::usage(format!("{api} is no API that has prices"));
            vec![Rules::of(api, model).ok_or_else(unknown)?]
        }
        _ => Rules::all(),
    };
    if arguments.json {
        output::print_json(&serde_json::json!(rules))?;
    } else {
        output::print(&table(&rules))?;
    }
    Ok(Exit::Done)
}

fn table(rules: &[Rules]) -> String {
    let columns = [
        Column::Left("API"),
        Column::Left("MODEL"),
        Column::Right("WRITTEN"),
        Column::Right("READ"),
        Column::Right("LEAST"),
        Column::Right("STEP"),
    ];
    let row = |rule: &Rules| {
        vec![
            rule.api.to_owned(),
            rule.model.clone(),
            rule.write.to_string(),
            rule.read.to_string(),
            rule.least.to_string(),
            rule.step.to_string(),
        ]
    };
    render(&columns, rules.iter().map(row))
}
