//! `toolgate pack lint`: finds mistakes in packs, and requests that bring up another tool.

mod report;
mod trial;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::ConfigArguments;
use crate::cli::documents::read_text;
use crate::cli::failure::{Exit, Failure};
use crate::cli::lint::FailOn;
use crate::cli::output;
use toolgate_lab::lint::Severity;
use toolgate_lab::pack_trial::Limits;
use toolgate_routing::packs::document::Mistake;
use toolgate_routing::packs::{Pack, lint};

const EXAMPLES: &str = "\
Examples:
  toolgate pack lint mine.yaml
  toolgate pack lint packs/*.yaml --no-encoder
  toolgate pack lint mine.yaml --catalog servers/ --within 5 --margin 0.2 --fail-on warning

Errors are of a pack alone: one that can't be read, a tool with fewer than eight requests, the same request twice, one
that names the tool, one that is both for it and under \"not\".

Warnings are of requests that fit another tool better. Each is routed while it is left out of its tool's row and words,
by the ranking that the server uses: its tool must come within the first 10 (--within), and no other may be .4
(--margin) ahead of it on the scale of scores, 0 to 1; that it may for a request of several steps. It is asked among
the tools of --catalog, as `toolgate eval` takes it, where servers without a pack of these have those that are shipped;
without a catalog, among the tools of its pack, which have names and requests then and no descriptions.

Exit code 3 when there is something to fail on.";

/// Say what is wrong or wanting in packs, and which requests fit another tool better.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Lint {
    /// Packs, as YAML.
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// The tools among which requests are asked: catalog files, or directories of them.
    #[arg(long, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// Judge by words alone, without the encoder.
    #[arg(long)]
    no_encoder: bool,
    /// The last good rank of a request's tool.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    within: u8,
    /// How far another tool may be ahead, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.4, value_parser = parse_share)]
    margin: f32,
    /// The least severity that makes the command fail.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// Results for one file.
#[derive(Debug)]
struct Linted {
    path: PathBuf,
    /// The pack, or `None` if it can't be read.
    pack: Option<Pack>,
    errors: Vec<Mistake>,
    warnings: Vec<Warning>,
}

/// A request that fits another tool better.
#[derive(Debug, Clone, PartialEq)]
struct Warning {
    tool: String,
    voice: String,
    request: String,
    /// Rank of the tool; `None` if it is below the ranks that Route returns.
    rank: Option<usize>,
    /// The tool that ranks first, as `server/tool`.
    first: String,
    lead: f32,
}

pub(super) async fn run(arguments: Lint) -> Result<Exit, Failure> {
    let config = arguments.config.load_for_model(arguments.model_dir.as_deref())?;
    let files = arguments.paths.iter().map(|path| Linted::read(path));
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    let by = trial::warn(&arguments, &config, &mut files).await?;
    if arguments.json {
        output::print_json(&report::as_json(&files, by, arguments.limits()))?;
    } else {
        output::print(&report::text(&files))?;
    }
    Ok(arguments.exit(&files))
}

impl Lint {
    fn limits(&self) -> Limits {
        Limits { within: usize::from(self.within), margin: self.margin }
    }

    fn exit(&self, files: &[Linted]) -> Exit {
        let has = |severity| match severity {
            Severity::Error => files.iter().any(|file| !file.errors.is_empty()),
            _ => files.iter().any(|file| !file.errors.is_empty() || !file.warnings.is_empty()),
        };
        if self.fail_on.least().is_some_and(has) { Exit::Refused } else { Exit::Done }
    }
}

impl Linted {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path)?;
        let (pack, errors) = match Pack::parse(&text) {
            Ok(pack) => {
                let found = lint::lint(&pack);
                (Some(pack), found)
            }
            Err(mistakes) => (None, mistakes),
        };
        Ok(Self { path: path.to_owned(), pack, errors, warnings: Vec::new() })
    }
}

fn parse_share(text: &str) -> Result<f32, String> {
    let share: Option<f32> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".into())
}
