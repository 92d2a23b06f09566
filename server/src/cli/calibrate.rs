//! `toolgate calibrate`: finds the best cut of a catalog's rankings from labelled queries, in this process.

mod report;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::arguments::ConfigArguments;
use super::embedding::{packs, with_encoders};
use super::failure::{Exit, Failure};
use super::files::{check_writable, write};
use super::output;
use toolgate_config::Config;
use toolgate_lab::calibrate::sweep::Aim;
use toolgate_lab::calibrate::{Calibrated, Calibration, PAIRS_ENOUGH};
use toolgate_lab::eval::formats::{self, Files};
use toolgate_lab::eval::{InputError, LabelledQuery, Progress, Sides, query_file};
use toolgate_routing::packs::Packs;

const EXAMPLES: &str = "\
Examples:
  toolgate calibrate --catalog servers/ --queries queries.jsonl
  toolgate calibrate --catalog servers/ --queries queries.jsonl --no-tool chat.jsonl --out policy.yaml
  toolgate calibrate --catalog servers/ --queries queries.jsonl --rule threshold --json

Catalog and queries are as `toolgate eval` takes them; some 100 to 200 labelled pairs of query and tool tell where to
cut. Two rules are looked for:
  ratio      the best overlap must reach a level, or no tool fits; a tool's score must reach a share of the best
             one's. The highest level and share that keep what --kept and --false-rejects ask for.
  threshold  each tool's overlap must reach it: the best F1 in steps of .01 (Tool Attention).
For --learn a query may also say what the agent called before it, \"called\": [\"git/git_status\"]: the gate goes by
whether a tool, or one of its MCP server, was.
Each is also found five times without a fifth of the queries and held against that fifth: what to expect of others.
The policy goes to --out, ready for `toolgate policy set`; it replaces the tenant's policy, so put its lines into the
one you have. No server is needed.";

/// Find where a catalog's rankings are best cut, and write it as a policy.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Calibrate {
    /// The catalog: a file, or a directory of files.
    #[arg(long, value_name = "FILE|DIR")]
    catalog: PathBuf,
    /// The labelled queries, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Queries that need no tool, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    no_tool: Option<PathBuf>,
    /// The rule that the policy says.
    #[arg(long, value_enum, default_value_t = Which::Ratio)]
    rule: Which,
    /// Also train a gate (logistic regression) in place of the ratio; the policy has it only where it does better on
    /// queries held out.
    #[arg(long)]
    learn: bool,
    /// The share of the right tools within top_k that the ratio must keep.
    #[arg(long, value_name = "SHARE", default_value_t = 0.97, value_parser = share)]
    kept: f64,
    /// The share of queries needing tools that the level may leave without any.
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, value_parser = share)]
    false_rejects: f64,
    /// Write the policy here; a file that is there is kept, unless it is empty.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// A level and a share of the best score.
    Ratio,
    /// A threshold for each tool.
    Threshold,
}

pub(super) async fn run(arguments: Calibrate) -> Result<Exit, Failure> {
    let config = arguments.config.load_for_model(arguments.model_dir.as_deref())?;
    let calibration = arguments.calibration(&config, packs(&config, &[])?)?;
    arguments.out.as_deref().map(check_free).transpose()?;
    let work =
        async move |sides: Sides<'_>, progress: &Progress| calibration.run(sides, progress).await;
    let Some(found) = with_encoders(&config, "the calibration", work).await? else {
        let queries = arguments.queries.display();
        return Err(Failure::new(format!("{queries}: no query has labels: nothing to go by")));
    };
    warn(&found);
    let rule = match arguments.rule {
        Which::Ratio => found.worthy().unwrap_or(&found.ratio).rule,
        Which::Threshold => found.threshold.rule,
    };
    let policy = found.policy(&rule);
    if let Some(path) = &arguments.out {
        write(path, &policy)?;
    }
    if arguments.json {
        output::print_json(&report::as_json(&found, &policy))?;
    } else {
        output::print(&report::report(&found, &policy, arguments.out.as_deref()))?;
    }
    Ok(Exit::Done)
}

impl Calibrate {
    fn calibration(
        &self,
        config: &Config,
        packs: Option<Arc<Packs>>,
    ) -> Result<Calibration, InputError> {
        let catalog = Some(self.catalog.as_path());
        let set = formats::read(Files { catalog, queries: &self.queries, answers: None }, None)?;
        let no_tool = self.no_tool.as_deref().map(query_file::read_no_tool).transpose()?;
        let queries: Vec<LabelledQuery> =
            set.queries.into_iter().chain(no_tool.unwrap_or_default()).collect();
        let aim = Aim { kept: self.kept, false_rejects: self.false_rejects };
        let limits = config.limits;
        let router = config.router;
        let servers = set.servers;
        Ok(Calibration { servers, queries, limits, packs, router, aim, learn: self.learn })
    }
}

fn warn(found: &Calibrated) {
    if found.pairs < PAIRS_ENOUGH {
        output::warn(format_args!(
            "{} labelled pairs of query and tool are too few to tell: {PAIRS_ENOUGH} to {} are enough",
            found.pairs,
            2 * PAIRS_ENOUGH
        ));
    }
    if found.learned.is_some() && found.worthy().is_none() {
        output::warn(format_args!(
            "the learned gate does no better than the ratio on queries held out, so that the policy has the ratio"
        ));
    }
    if found.no_tool == 0 {
        output::warn(format_args!(
            "no query needs no tool: how many such requests get tools is not known (--no-tool)"
        ));
    }
}

/// Refuses to overwrite a policy, because it may hold more than the cut.
fn check_free(path: &std::path::Path) -> Result<(), Failure> {
    let is_taken = std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    if is_taken {
        let problem = "is there already: name another file, and put its lines into your policy";
        return Err(Failure::new(format!("{}: {problem}", path.display())));
    }
    check_writable(path)
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "write a share such as 0.97".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("write 0 to 1".to_owned()) }
}
