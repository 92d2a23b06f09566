//! `toolgate summarize`: lets a language model write summaries in the words of users, and measures whether they make
//! tools easier to find. No Toolgate server is needed.

mod out;
mod report;
mod work;

use std::path::PathBuf;

use clap::Args;

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::language_model::ModelArguments;
use super::{documents, output};
use toolgate_config::Config;
use toolgate_lab::eval::query_file;
use toolgate_lab::eval::stock::Stock;

const EXAMPLES: &str = "\
Examples:
  toolgate summarize git.json --endpoint http://127.0.0.1:11434 --model qwen3 --out git.settings.json
  toolgate summarize servers/ --endpoint https://api.example.com/v1 --model NAME --api-key-env KEY --out settings/
  toolgate summarize catalog.json --out settings/ --queries queries.jsonl --keep-better
  toolgate register git.json --settings git.settings.json

A file holds the answer of an MCP server's tools/list, or several servers as `toolgate eval` takes them. The
endpoint is asked for each tool with POST .../v1/chat/completions, and sees its name, description and
parameters. An answer is taken when it is one line of plain text about the tool that fits a summary of 60
tokens; otherwise the tool keeps the summary that a registration derives. Without --endpoint, tools whose texts
`toolgate lint` finds wanting get one that is made of their own words by rule.

The output is a settings file for each MCP server, as JSON; with several servers, a folder of them. Summaries
that are there already stay, so that a run that was cut off goes on where it was.";

/// Have a language model rewrite tools' summaries, and measure whether they find better.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Summarize {
    /// Files with a tools/list, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The settings file to write, or a folder of them for several MCP servers.
    #[arg(long, value_name = "FILE|DIR")]
    out: PathBuf,
    /// Labelled queries, as `toolgate eval` takes them: measure how well they find their tools before and
    /// after.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Leave summaries out by which their tools are found worse: by the labelled queries, or by a request made
    /// of the description. The next run asks for them again.
    #[arg(long)]
    keep_better: bool,
    /// Write summaries that are there already again.
    #[arg(long)]
    again: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir), for measuring.
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    language_model: ModelArguments,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(summarize: Summarize) -> Result<Exit, Failure> {
    let config = summarize.config()?;
    let endpoint = summarize.language_model.endpoint()?;
    let queries = summarize.queries.as_deref().map(query_file::read).transpose()?;
    let servers = documents::read_catalogs(&summarize.paths)?;
    let stock = Stock::check(&servers, &config.limits);
    let files = out::SettingsFiles::open(&summarize.out, &stock)?;
    let written = work::write(&summarize, stock, files, endpoint).await?;
    let report = work::finish(&summarize, &config, written, &queries.unwrap_or_default()).await?;
    report.warn();
    if summarize.json {
        output::print_json(&report.as_json())?;
    } else {
        output::print(&report.text())?;
    }
    Ok(Exit::Done)
}

impl Summarize {
    fn config(&self) -> Result<Config, Failure> {
        self.config.load_for_model(self.model_dir.as_deref())
    }
}
