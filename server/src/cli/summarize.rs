//! `toolgate summarize`: has a language model write summaries in the words that users ask in, and says whether
//! tools are found better by them. No Toolgate server is needed.

mod out;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::{documents, output};
use crate::config::Config;
use crate::config::units::parse_duration;
use crate::eval::query_file;
use crate::eval::stock::Stock;
use crate::summarize::{ApiKey, Endpoint, EndpointAddress};

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
    /// An OpenAI-compatible endpoint: its base, or the whole address of its chat completions.
    #[arg(long, value_name = "URL", requires = "model", value_parser = EndpointAddress::parse)]
    endpoint: Option<EndpointAddress>,
    /// The model to ask for.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    model: Option<String>,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "VARIABLE", requires = "endpoint")]
    api_key_env: Option<String>,
    /// The file that holds the endpoint's key.
    #[arg(long, value_name = "FILE", requires = "endpoint", conflicts_with = "api_key_env")]
    api_key_file: Option<PathBuf>,
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
    /// Calls that are under way at once, at most.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// How long one call may take.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir), for measuring.
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(summarize: Summarize) -> Result<Exit, Failure> {
    let config = summarize.config()?;
    let endpoint = summarize.endpoint()?;
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

    fn endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let (Some(address), Some(model)) = (&self.endpoint, &self.model) else { return Ok(None) };
        let key = match (&self.api_key_env, &self.api_key_file) {
            (Some(name), _) => Some(ApiKey::from_variable(name)),
            (None, Some(path)) => Some(ApiKey::from_file(path)),
            (None, None) => None,
        };
        let key = key.transpose().map_err(Failure::new)?;
        if key.is_some() && address.is_in_the_open() {
            output::warn(format_args!("{address}: the key travels unencrypted; use https://"));
        }
        Ok(Some(Endpoint::new(address.clone(), model.clone(), key, self.timeout)))
    }
}
