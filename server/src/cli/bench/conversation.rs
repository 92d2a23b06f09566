//! `toolgate bench conversation`: the price of whole conversations, by the way tools are put into requests.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::tax::table;
use crate::cli::arguments::ConfigArguments;
use crate::cli::embedding::{packs, with_encoders};
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::{check_writable, write};
use crate::cli::output;
use crate::cli::svg::{Chart, Line};
use toolgate_lab::conversations::{
    Bench, Cell, Grid, HISTORIES, Method, Provider, QuerySet, Report, TURNS,
};
use toolgate_lab::eval::{Progress, Sides, catalog_file, query_file};

const EXAMPLES: &str = "\
Examples:
  toolgate bench conversation --catalog servers/ --queries tests/data/conversations/held-out.jsonl
  toolgate bench conversation --catalog servers/ --queries people.jsonl --queries english.jsonl --markdown costs.md
  toolgate bench conversation --catalog servers/ --queries people.jsonl --history 0,20000 --turns 1,40 --json costs.json

Each set of queries is played as conversations: those of one \"conversation\" as they were recorded, with their \"calls\" and
\"answer\", and others in their order, with a call and an answer of about 300 tokens. Route chooses each turn's tools;
requests are made for each API by
  naive     all definitions, before all messages
  paper     all summaries first, and the turn's definitions directly before its message (Tool Attention)
  anew      the turn's definitions before all messages, chosen anew
  pass, native, envelope, cut, auto
            the strategies that Route offers; where an API lacks native, it is envelope
Prices are in tokens of uncached input: what a request shares with the one before it is read from the provider's cache.
A right tool that is not shown takes a search, which is assumed to find it. Nothing is sent to a provider.

Ends with 3 where auto is dearer than another method by more than 2%.";

/// Most conversations of one set.
const CONVERSATIONS: usize = 4;

/// Largest history, in tokens.
const HISTORY_MAX: u32 = 1_000_000;

/// Most turns of a conversation.
const TURNS_MAX: usize = 500;

/// Number of cells and of warnings that are told of. --json has all.
const TOLD: usize = 5;

/// Measure what whole conversations cost, by the way tools are put into requests.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Conversation {
    /// The catalog: a file, or a directory of files.
    #[arg(long, value_name = "FILE|DIR")]
    catalog: PathBuf,
    /// What people ask, one JSON object a line. Can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    queries: Vec<PathBuf>,
    /// Tokens of messages before the conversation.
    #[arg(long, value_name = "TOKENS,...", value_delimiter = ',', default_values_t = HISTORIES, value_parser = parse_history)]
    history: Vec<u32>,
    /// Turns after which the price is taken.
    #[arg(long, value_name = "TURNS,...", value_delimiter = ',', default_values_t = TURNS, value_parser = parse_turns)]
    turns: Vec<usize>,
    /// Most conversations to make of each file.
    #[arg(long, value_name = "N", default_value_t = CONVERSATIONS)]
    conversations: usize,
    /// Play each conversation over the MCP servers of its own tools alone, as somebody has who uses no others.
    #[arg(long)]
    own_servers: bool,
    /// Write the tables as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write all cells as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw prices by the number of turns, as shares of naive's, as SVG files in this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(arguments: Conversation) -> Result<Exit, Failure> {
    let config = arguments.config.load_for_model(arguments.model_dir.as_deref())?;
    let bench = Bench {
        servers: catalog_file::read(&arguments.catalog)?,
        sets: arguments.queries.iter().map(|path| set(path)).collect::<Result<_, _>>()?,
        limits: config.limits,
        router: config.router,
        packs: packs(&config, &[])?,
        histories: ascending(&arguments.history),
        turns: ascending(&arguments.turns),
        conversations: arguments.conversations.max(1),
        own_servers: arguments.own_servers,
    };
    let files = arguments.markdown.iter().chain(&arguments.json);
    files.into_iter().try_for_each(|path| check_writable(path))?;
    if let Some(directory) = &arguments.plots {
        let made = fs::create_dir_all(directory);
        made.map_err(|error| {
            Failure::new(format!("{}: cannot be made: {error}", directory.display()))
        })?;
    }
    let measure =
        async move |sides: Sides<'_>, progress: &Progress| bench.run(sides, progress).await;
    let report = with_encoders(&config, "the benchmark", measure).await?;
    arguments.write(&report)?;
    report.warnings.iter().take(TOLD).for_each(output::warn);
    let texts: Vec<String> = report.tables().iter().map(table).collect();
    output::print(&texts.join("\n"))?;
    Ok(if tell_dearer(&report) { Exit::Refused } else { Exit::Done })
}

impl Conversation {
    fn write(&self, report: &Report) -> Result<(), Failure> {
        if let Some(path) = &self.markdown {
            write(path, &report.to_markdown())?;
        }
        if let Some(path) = &self.json {
            write(path, &format!("{:#}\n", report.to_json()))?;
        }
        if let Some(directory) = &self.plots {
            for grid in &report.grids {
                for provider in Provider::ALL {
                    let name = format!("{}-{}.svg", grid.name, provider.api.name());
                    write(&directory.join(name), &chart(grid, provider).to_svg())?;
                }
            }
        }
        Ok(())
    }
}

/// Tells of the cells in which `auto` is too dear. Returns true if there are any.
fn tell_dearer(report: &Report) -> bool {
    let dearer = report.dearer();
    for (set, one) in dearer.iter().take(TOLD) {
        let Cell { api, history, turns, .. } = one.auto;
        output::warn(format_args!(
            "{set}, {}, {history} tokens, {turns} turns: auto costs {:.0} a turn, {} {:.0}",
            api.name(),
            one.auto.totals.price_a_turn(),
            one.other.method.name(),
            one.other.totals.price_a_turn(),
        ));
    }
    if dearer.len() > TOLD {
        let more = dearer.len() - TOLD;
        output::warn(format_args!("{more} more cells where auto is too dear; --json has all"));
    }
    !dearer.is_empty()
}

fn set(path: &Path) -> Result<QuerySet, Failure> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(QuerySet { name, queries: query_file::read(path)? })
}

fn ascending<T: Ord + Copy>(numbers: &[T]) -> Vec<T> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn parse_history(text: &str) -> Result<u32, String> {
    let tokens = text.parse().ok().filter(|tokens| *tokens <= HISTORY_MAX);
    tokens.ok_or_else(|| format!("write a number from 0 to {HISTORY_MAX}"))
}

fn parse_turns(text: &str) -> Result<usize, String> {
    let turns = text.parse().ok().filter(|turns| (1..=TURNS_MAX).contains(turns));
    turns.ok_or_else(|| format!("write a number from 1 to {TURNS_MAX}"))
}

/// Returns the prices by the number of turns, behind the history in the middle of the grid's.
fn chart(grid: &Grid, provider: Provider) -> Chart {
    let of_api = || grid.cells.iter().filter(|cell| cell.api == provider.api);
    let histories = ascending(&of_api().map(|cell| cell.history).collect::<Vec<_>>());
    let turns = ascending(&of_api().map(|cell| cell.turns).collect::<Vec<_>>());
    let history = histories.get(histories.len() / 2).copied().unwrap_or(0);
    let place = |at: usize| (at as f64 + 0.5) / turns.len().max(1) as f64;
    let price = |turns: usize, method: Method| {
        let mut row = grid.row(provider.api, history, turns);
        row.find(|cell| cell.method == method).map_or(0.0, |cell| cell.totals.price)
    };
    let lines = [
        (Method::Paper, "#b4541a"),
        (Method::Anew, "#7a3fa0"),
        (Method::CUT, "#2f7d4f"),
        (Method::AUTO, "#1f4e9c"),
    ];
    let line = |(method, colour): (Method, &'static str)| {
        let share = |turns: usize| price(turns, method) / price(turns, Method::Naive).max(1.0);
        let points = turns.iter().enumerate().map(|(at, turns)| (place(at), share(*turns)));
        let dots = method == Method::AUTO;
        let name = method.name().to_owned();
        Line { name, colour, points: points.collect(), band: Vec::new(), dots }
    };
    Chart {
        title: format!("{}, {}, {history} tokens of history", grid.name, provider.api.name()),
        across: "turns",
        up: "price as a share of all definitions first",
        ticks: turns.iter().enumerate().map(|(at, turns)| (place(at), turns.to_string())).collect(),
        lines: lines.into_iter().map(line).collect(),
        mark: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded_and_ascend() {
        assert_eq!((parse_history("0"), parse_turns("60")), (Ok(0), Ok(60)));
        assert!(parse_history("2000000").is_err() && parse_turns("0").is_err());
        assert_eq!(ascending(&[5, 1, 5]), [1, 5]);
    }
}
