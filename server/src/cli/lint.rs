//! `toolgate lint`: finds texts that make tools hard to find, before registration. It runs in this process and needs no
//! server.

mod report;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::arguments::ConfigArguments;
use super::documents;
use super::embedding::with_encoders;
use super::failure::{Exit, Failure};
use super::output;
use toolgate_lab::eval::{Progress, Sides};
use toolgate_lab::lint::{self, Linted, Severity};

const EXAMPLES: &str = "\
Examples:
  toolgate lint git.json
  toolgate lint servers/ --fail-on warning
  toolgate lint servers/ --suggest
  toolgate lint catalog.json --show note --json

A file holds the answer of an MCP server's tools/list, or several servers as `toolgate eval` takes them. Register
together what is linted together: tools stand in each other's way.

Each tool is looked for twice, by the ranking that the server uses: by its own summary, which must bring it
into the first 5, and by a request made of its description's first sentence, into the first 10. Codes:
  REJECTED, DUPLICATE_NAME           a registration would leave the tool out
  UNFINDABLE                         its own words bring up other tools
  NEAR_TWIN                          another tool reads almost the same
  EMPTY_DESCRIPTION, TOO_SHORT       hardly a word to be found by
  MACHINE_MADE_DESCRIPTION           a placeholder, a request line, the name again
  BOILERPLATE                        its summary is what many tools of the server say
  MISSING_PARAMETER_DESCRIPTION      the model must guess what to pass
  SUMMARY_CUT                        its first sentence is longer than a summary

Errors are tools that can't be had, or that neither way of looking finds; notes are what is merely late, shared
or long; all else is a warning. Found by one's own words is the least: users choose others.

Exit code 3 when there is something to fail on.";

/// Find out why tools are not found: by rank, by near twins, by their descriptions.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Lint {
    /// Files with a tools/list, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Also suggest summaries made of a tool's own words, where they find it better.
    #[arg(long)]
    suggest: bool,
    /// The least severity that makes the command fail.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// The least severity that is listed; all are counted, and --json has all.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = Show::Warning)]
    show: Show,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// What makes the command fail.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FailOn {
    Error,
    Warning,
    Never,
}

/// What is listed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Show {
    Error,
    Warning,
    Note,
}

pub(super) async fn run(arguments: Lint) -> Result<Exit, Failure> {
    let config = arguments.config.load_for_model(arguments.model_dir.as_deref())?;
    let servers = documents::read_catalogs(&arguments.paths)?;
    let lint = lint::Lint { servers, limits: config.limits, suggest: arguments.suggest };
    let look = async move |sides: Sides<'_>, progress: &Progress| lint.run(sides, progress).await;
    let linted = with_encoders(&config, "the check", look).await?;
    if arguments.json {
        output::print_json(&report::as_json(&linted))?;
    } else {
        output::print(&report::report(&linted, arguments.show.least()))?;
    }
    Ok(arguments.fail_on.exit(&linted))
}

impl FailOn {
    /// Returns the lowest severity that makes a command fail, or `None` if none does.
    pub(super) fn least(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Never => None,
        }
    }

    fn exit(self, linted: &Linted) -> Exit {
        let is_reached = |least| linted.findings.iter().any(|found| found.severity >= least);
        if self.least().is_some_and(is_reached) { Exit::Refused } else { Exit::Done }
    }
}

impl Show {
    fn least(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Note => Severity::Note,
        }
    }
}
