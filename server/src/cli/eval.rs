//! `toolgate eval`: how well a catalog's tools are found for labelled queries, in this process.

mod report;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::{output, serve};
use crate::config::{Config, FlagValue};
use crate::encoder::Prefixed;
use crate::eval::ranking::Ranked;
use crate::eval::{Evaluated, Evaluation, InputError, Sides, catalog_file, query_file};
use crate::serve::load_sides;

const EXAMPLES: &str = "\
Examples:
  toolgate eval --catalog catalog.json --queries queries.jsonl
  toolgate eval --catalog servers/ --queries queries.jsonl --baseline
  toolgate eval --catalog servers/ --queries queries.jsonl --conversation 30
  toolgate eval --catalog catalog.json --queries queries.jsonl --ranked ranked.jsonl --json report.json

A catalog is {\"servers\": [{\"name\", \"description\", \"tools\"}]}, the tools as tools/list has them, or one
such server; of a directory, every *.json is taken. Queries are lines of
  {\"query\": \"what changed since friday?\", \"relevant\": [\"git/git_log\"]}
and those without \"relevant\" are ranked but not measured. No server is needed; the limits are the
configuration's.";

/// Measure how well a catalog's tools are found for labelled queries.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Eval {
    /// The catalog: a file, or a directory of files.
    #[arg(long, value_name = "FILE|DIR")]
    catalog: PathBuf,
    /// The queries, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Write each query's best tools, before any cut, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    ranked: Option<PathBuf>,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also rank by the overlap of plain "name: description" cut to the same number of tokens, and nothing
    /// else, for comparison.
    #[arg(long)]
    baseline: bool,
    /// Also rank by each query's clauses, as several intents of one turn.
    #[arg(long)]
    clauses: bool,
    /// Also play the first so many queries as one conversation, and say how much of its prompts a
    /// provider's cache could serve.
    #[arg(long, value_name = "TURNS", default_value_t = 0, hide_default_value = true)]
    conversation: usize,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(eval: Eval) -> Result<Exit, Failure> {
    let config = eval.config()?;
    let evaluation = Evaluation {
        servers: catalog_file::read(&eval.catalog)?,
        queries: query_file::read(&eval.queries)?,
        limits: config.limits,
        with_baseline: eval.baseline,
        with_clauses: eval.clauses,
        conversation: eval.conversation,
    };
    let outputs: Vec<_> = eval.ranked.iter().chain(&eval.json).collect();
    outputs.into_iter().try_for_each(|path| check_writable(path))?;
    let loaded = load_sides(&config.encoder).await;
    let (passages, queries) = loaded.map_err(|error| Failure::new(serve::with_causes(&error)))?;
    let Evaluated { ranked, report } = evaluate(evaluation, passages, queries).await?;
    if let Some(path) = &eval.ranked {
        write(path, &lines(&ranked)?)?;
    }
    if let Some(path) = &eval.json {
        write(path, &format!("{:#}\n", report.to_json()))?;
    }
    report::warn(&report);
    output::print(&report::report(&report))?;
    Ok(Exit::Done)
}

impl Eval {
    fn config(&self) -> Result<Config, Failure> {
        let flag = self.model_dir.as_ref().map(|directory| FlagValue {
            flag: "--model-dir".into(),
            key: "encoder.model_dir".into(),
            value: directory.to_string_lossy().into_owned(),
        });
        Ok(self.config.load(flag.into_iter().collect())?.config)
    }
}

/// Evaluates on a task of its own: it computes for seconds on end, and Ctrl-C must still be heard.
async fn evaluate(
    evaluation: Evaluation,
    passages: Prefixed,
    queries: Prefixed,
) -> Result<Evaluated, Failure> {
    let (bar, progress) = output::progress_of_texts();
    let work = async move {
        let sides = Sides { passages: &passages, queries: &queries };
        evaluation.run(sides, &progress).await
    };
    let outcome = tokio::spawn(work).await;
    bar.finish_and_clear();
    match outcome {
        Ok(evaluated) => evaluated.map_err(|error| Failure::new(serve::with_causes(&error))),
        Err(error) => Err(Failure::new(format!("the evaluation broke off: {error}"))),
    }
}

/// A path that can't be written is better known before minutes of work than after.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: cannot be written: {error}", path.display()))
}

fn lines(ranked: &[Ranked]) -> Result<String, Failure> {
    let mut text = String::new();
    for one in ranked {
        let line = serde_json::to_string(one).map_err(|error| Failure::new(error.to_string()))?;
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::new(error.to_string())
    }
}
