//! `toolgate bench memory`: learning curves of the memory of successful calls, as a table.

use std::path::PathBuf;

use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::cli::arguments::ConfigArguments;
use crate::cli::embedding::with_encoders;
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::{check_writable, write};
use crate::cli::output;
use crate::cli::table::{Column, render};
use crate::cli::text::counted;
use toolgate_lab::eval::bootstrap::{Bootstrap, Estimate};
use toolgate_lab::eval::formats::{self, Files};
use toolgate_lab::eval::learning::{Curves, Learned, MEASURES, Point};
use toolgate_lab::eval::{Progress, Sides, query_file};

const EXAMPLES: &str = "\
Examples:
  toolgate bench memory --catalog catalog.json --queries queries.jsonl
  toolgate bench memory --catalog catalog.json --queries queries.jsonl --no-tool chat.jsonl --json curves.json

Half of the queries are observed as calls of their tools, at most 0, 1, 5 and 20 of each, every one by another caller;
recall is that of the other half, as far as each of their tools was observed. The same again with one call in ten of a
wrong tool, with one caller who calls one tool a thousand times, and with one who does so in the very words of each
query that is measured. Catalogs and queries are files as `toolgate eval` takes them. No server is needed.";

/// Measure how much better tools are found once some calls of them were remembered.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Memory {
    /// The catalog: a file, or a directory of files.
    #[arg(long, value_name = "FILE|DIR")]
    catalog: Option<PathBuf>,
    /// The queries, as `toolgate eval` takes them.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Queries that need no tool, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    no_tool: Option<PathBuf>,
    /// How often the queries are divided anew.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// What divides the queries and resamples them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Weigh memory otherwise than the product does.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    weight: Option<f32>,
    /// Write the curves as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(memory: Memory) -> Result<Exit, Failure> {
    let config = memory.config.load_for_model(memory.model_dir.as_deref())?;
    let catalog = memory.catalog.as_deref();
    let files = Files { catalog, queries: &memory.queries, answers: None };
    let set = formats::read(files, None)?;
    let no_tool = memory.no_tool.as_deref().map(query_file::read_no_tool).transpose()?;
    memory.json.iter().try_for_each(|path| check_writable(path))?;
    let curves = Curves {
        servers: set.servers,
        queries: set.queries,
        no_tool: no_tool.unwrap_or_default(),
        limits: config.limits,
        router: config.router,
        half_life: config.memory.half_life,
        bootstrap: Bootstrap { seed: memory.seed, ..Bootstrap::default() },
        rounds: memory.rounds,
        weight: memory.weight,
    };
    let work = async move |sides: Sides<'_>, progress: &Progress| curves.run(sides, progress).await;
    let learned = with_encoders(&config, "the measurement", work).await?;
    if let Some(path) = &memory.json {
        write(path, &format!("{:#}\n", as_json(&learned)))?;
    }
    output::print(&report(&learned))?;
    Ok(Exit::Done)
}

fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

fn report(learned: &Learned) -> String {
    let columns = [
        Column::Left("OBSERVED"),
        Column::Right("CALLS"),
        Column::Right("A TOOL"),
        Column::Right("RECALL@1"),
        Column::Right("@5"),
        Column::Left("95%"),
        Column::Right("@10"),
        Column::Right("SET RECALL"),
        Column::Right("SET"),
        Column::Right("FALSE ACCEPTS"),
    ];
    let rows = learned.points.iter().map(row);
    format!(
        "{}\nqueries measured: {}, over {} that were observed; memory weighs {}\n",
        render(&columns, rows),
        learned.queries,
        counted(learned.tools, "tool"),
        learned.weight
    )
}

fn row(point: &Point) -> Vec<String> {
    let value = |at: usize| format!("{:.3}", point.measured[at].value);
    let interval = point.measured[1].interval;
    let interval = interval.map(|of| format!("[{:.3}, {:.3}]", of.low, of.high));
    vec![
        point.company.name().to_owned(),
        point.calls.to_string(),
        format!("{:.1}", point.observed),
        value(0),
        value(1),
        interval.unwrap_or_default(),
        value(2),
        value(3),
        format!("{:.1}", point.measured[4].value),
        point.false_accepts.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}")),
    ]
}

fn as_json(learned: &Learned) -> Value {
    let estimate = |one: &Estimate| json!({ "value": one.value, "interval": one.interval.map(|of| [of.low, of.high]) });
    let point = |point: &Point| {
        let measured = MEASURES.iter().zip(&point.measured);
        let measured: serde_json::Map<String, Value> =
            measured.map(|(measure, one)| (measure.name(), estimate(one))).collect();
        json!({
            "observed": point.company.name(),
            "calls": point.calls,
            "calls_a_tool": point.observed,
            "measured": measured,
            "false_accepts": point.false_accepts,
        })
    };
    let points: Vec<Value> = learned.points.iter().map(point).collect();
    json!({
        "queries": learned.queries,
        "tools": learned.tools,
        "weight": learned.weight,
        "points": points,
    })
}
