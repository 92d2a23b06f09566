//! `toolgate eval`: measures the retrieval of a catalog's tools for labelled queries, in this process.

mod against;
#[cfg(test)]
mod example;
mod markdown;
mod outputs;
mod plots;
mod report;
mod sections;

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};

use super::arguments::{ConfigArguments, model_flag};
use super::embedding::{packs, with_encoders};
use super::failure::{Exit, Failure};
use super::output;
use toolgate_config::{Config, FlagValue};
use toolgate_lab::eval::bootstrap::Bootstrap;
use toolgate_lab::eval::conversation::Conversation;
use toolgate_lab::eval::formats::{self, Files, Format, LabelledSet};
use toolgate_lab::eval::{
    Evaluated, Evaluation, InputError, LabelledQuery, Progress, Sides, query_file,
};

use against::Against;
use outputs::Outputs;

const EXAMPLES: &str = "\
Examples:
  toolgate eval --catalog catalog.json --queries queries.jsonl
  toolgate eval --catalog servers/ --queries queries.jsonl --baseline
  toolgate eval --catalog servers/ --queries queries.jsonl --no-tool chat.jsonl --markdown report.md --plots plots
  toolgate eval --catalog servers/ --queries queries.jsonl --against-set router.relative_cutoff=0.7
  toolgate eval --catalog servers/ --queries queries.jsonl --conversation 30
  toolgate eval --catalog catalog.json --queries queries.jsonl --ranked ranked.jsonl --json report.json
  toolgate eval --queries BFCL_v3_multiple.json

A catalog is {\"servers\": [{\"name\", \"description\", \"tools\"}]}, the tools as tools/list has them, or one
such server; of a directory, every *.json is taken. Queries are lines of
  {\"query\": \"what changed since friday?\", \"relevant\": [\"git/git_log\"]}
and those without \"relevant\" are ranked but not measured. One with \"relevant\": [] needs no tool, as those of
--no-tool do: they measure how often tools are sent all the same. A \"kind\" and a \"language\" of queries are told
apart in the report. Intervals are of 95%: where a figure would lie with other queries of the same sort.

Published sets are read as they come; which one it is, is seen from the queries:
  bfcl       BFCL_v3_*.json or BFCL_v4_*.json of single-turn categories, answers in possible_answer/. Each question
             has functions of its own; all of them together are the catalog. A name that comes again keeps its first
             definition. Irrelevance questions count as needing no tool, though another question's may serve.
  metatool   all_clean_data.csv or multi_tool_query_golden.json, with --catalog plugin_des.json
  toolbench  G1_query.json and the like; the union of api_list is the catalog
  toolret    queries with labels, with --catalog the tools; both as JSON or JSON lines
Of bfcl and toolbench, --catalog names more such files, whose tools are taken instead.

No server is needed. Sets are cut as Route cuts them for a conversation's first turn, by an agent that may see every
tool; limits, threshold, ratio and top_k are the configuration's.";

/// Maximum number of resamples. More would take longer without steadier results.
const RESAMPLES_MAX: u64 = 100_000;

/// Measure how well a catalog's tools are found for labelled queries.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Eval {
    /// The catalog: a file, or a directory of files. Some formats have the tools beside the queries.
    #[arg(long, value_name = "FILE|DIR")]
    catalog: Option<PathBuf>,
    /// The queries, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Queries that need no tool, one JSON object a line, without "relevant".
    #[arg(long, value_name = "FILE")]
    no_tool: Option<PathBuf>,
    /// The format of catalog and queries: toolgate, bfcl, metatool, toolbench or toolret. Without it, the one that
    /// the queries look like.
    #[arg(long, value_parser = parse_format, value_name = "NAME")]
    format: Option<Format>,
    /// The answers, where the format keeps them apart (bfcl).
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Also rank by the overlap of plain "name: description" cut to the same number of tokens, and nothing
    /// else, for comparison.
    #[arg(long)]
    baseline: bool,
    /// Also rank by each query's clauses, as several intents of one turn.
    #[arg(long)]
    clauses: bool,
    /// Also rank with a part of the ranking left out: clauses, overlap, words.
    #[arg(long)]
    ablations: bool,
    /// Also say what so many tokens show: full schemas alone, or a few of them and a tail of signatures.
    #[arg(long)]
    visible: bool,
    /// Also play the first so many queries as one conversation, with 0 to 60,000 tokens of messages before it, and
    /// say how much of its prompts a provider's cache could serve. Ends with 3 where the set that Route keeps is dearer than
    /// routing anew or than the paper's layout at the same place: in tools[], or directly before the message.
    #[arg(long, value_name = "TURNS", default_value_t = 0, hide_default_value = true)]
    conversation: usize,
    /// An MCP server of the catalog whose tools have no pack, whatever packs there are: what a server of one's own comes to
    /// beside those that have one. Can be repeated.
    #[arg(long, value_name = "SERVER")]
    without_pack: Vec<String>,
    /// How often queries are resampled for the intervals; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = resamples())]
    resamples: u64,
    /// What decides the resamples: the same seed gives the same intervals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    against: Against,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(eval: Eval) -> Result<Exit, Failure> {
    let config = eval.config.load(eval.named())?.config;
    let other = eval.against.config(&eval.config, eval.named())?;
    let earlier = eval.against.earlier()?;
    let (set, no_tool) = eval.read()?;
    eval.outputs.check()?;
    let evaluation = eval.evaluation(set, no_tool, &config)?;
    let mut evaluated = evaluate(evaluation.clone(), &config).await?;
    if let Some((name, config)) = other {
        let evaluation = Evaluation {
            with_baseline: false,
            with_clauses: false,
            with_ablations: false,
            with_visible: false,
            conversation: 0,
            limits: config.limits,
            router: config.router,
            packs: packs(&config, &eval.without_pack)?,
            ..evaluation
        };
        let other = evaluate(evaluation, &config).await?;
        against::add(&mut evaluated, &name, &other.samples);
    }
    if let Some(earlier) = earlier {
        earlier.compare(&mut evaluated)?;
    }
    eval.outputs.write(&evaluated)?;
    report::warn(&evaluated.report);
    output::print(&report::report(&evaluated.report))?;
    // Exit code 3 if the product's default costs more than an alternative layout.
    let is_dearer = evaluated.report.conversation.as_ref().is_some_and(Conversation::is_dearer);
    Ok(if is_dearer { Exit::Refused } else { Exit::Done })
}

impl Eval {
    /// Returns the flags that set keys of the configuration.
    fn named(&self) -> Vec<FlagValue> {
        model_flag(self.model_dir.as_deref())
    }

    /// Reads the labelled set, and the queries that need no tool.
    fn read(&self) -> Result<(LabelledSet, Vec<LabelledQuery>), InputError> {
        let files = Files {
            catalog: self.catalog.as_deref(),
            queries: &self.queries,
            answers: self.answers.as_deref(),
        };
        let set = formats::read(files, self.format)?;
        let no_tool = self.no_tool.as_deref().map(query_file::read_no_tool).transpose()?;
        Ok((set, no_tool.unwrap_or_default()))
    }

    fn evaluation(
        &self,
        set: LabelledSet,
        no_tool: Vec<LabelledQuery>,
        config: &Config,
    ) -> Result<Evaluation, Failure> {
        Ok(Evaluation {
            servers: set.servers,
            queries: set.queries,
            no_tool,
            limits: config.limits,
            router: config.router,
            packs: packs(config, &self.without_pack)?,
            bootstrap: Bootstrap { resamples: self.resamples as usize, seed: self.seed },
            with_baseline: self.baseline,
            with_clauses: self.clauses,
            with_ablations: self.ablations,
            with_visible: self.visible,
            conversation: self.conversation,
        })
    }
}

async fn evaluate(evaluation: Evaluation, config: &Config) -> Result<Evaluated, Failure> {
    let work =
        async move |sides: Sides<'_>, progress: &Progress| evaluation.run(sides, progress).await;
    with_encoders(config, "the evaluation", work).await
}

fn resamples() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(..=RESAMPLES_MAX)
}

fn parse_format(text: &str) -> Result<Format, String> {
    let found = Format::ALL.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
    let names = || Format::ALL.map(|(name, _)| name).join(", ");
    found.ok_or_else(|| format!("write one of {}", names()))
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::new(error.to_string())
    }
}
