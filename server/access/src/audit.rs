//! Who changed what: one event for each change of a catalog, a policy, memory or an API key, in the log (target
//! `toolgate::audit`) and, where one is named, in a file. Never what a definition or document says, and no secret.
//!
//! A file gets two lines for a change: one before, without which there is no change, and one after.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::auth::AuthMetrics;
use toolgate_core::error::Error;
use toolgate_store::reserve::{Reserve, is_full};

mod moment;

/// Bytes set aside beside the file: some hundred changes.
const RESERVE: u64 = 256 << 10;

/// Who makes a change.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Actor {
    /// Who, within the tenant; empty while authentication is off.
    pub principal: String,
    /// The credential's id, which is no secret.
    pub credential: String,
    /// How the caller was told.
    pub method: &'static str,
}

/// A change as it is asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// What is called, such as `CatalogService/RegisterServer`, or `toolgate key create`.
    pub act: &'static str,
    /// Whose content changes; empty for that of no tenant.
    pub tenant: String,
    /// The MCP server or the API key concerned; empty for none.
    pub of: String,
    /// Who.
    #[serde(flatten)]
    pub actor: Actor,
    /// Whether it takes content away or forbids something: where the disk is full it gets the room that was set aside.
    #[serde(skip)]
    pub withdraws: bool,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// The catalog revision, where there is one.
    pub revision: Option<u64>,
    /// New tools.
    pub accepted: usize,
    /// Changed tools.
    pub changed: usize,
    /// Removed tools, or exemplars forgotten.
    pub removed: usize,
    /// Tools that were not stored.
    pub rejected: usize,
    /// Tools that wait for approval.
    pub quarantined: usize,
    /// Tools that waited for it until now.
    pub approved: usize,
}

/// Where changes are told.
pub struct Audit {
    file: Option<Arc<AuditFile>>,
    metrics: AuthMetrics,
}

/// The file of a server's changes.
struct AuditFile {
    path: PathBuf,
    open: Mutex<Open>,
    /// `None` for what is no regular file, such as a pipe.
    reserve: Option<Reserve>,
}

struct Open {
    file: File,
    /// Whether the last line may not be whole.
    torn: bool,
}

/// One line of the file.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    /// The same for both lines of a change.
    id: &'a str,
    event: &'static str,
    #[serde(flatten)]
    change: &'a Change,
    #[serde(skip_serializing_if = "str::is_empty")]
    outcome: &'a str,
    #[serde(flatten)]
    effect: Option<Effect>,
}

/// A change that was written down before it is made. Dropped before [`Begun::ends`], it counts as cut off.
pub struct Begun {
    id: String,
    change: Change,
    file: Option<Arc<AuditFile>>,
    metrics: AuthMetrics,
    is_told: bool,
}

impl Audit {
    /// Tells the log, and this file if there is one.
    ///
    /// # Errors
    /// The file can't be opened for appending.
    pub fn open(path: Option<&Path>, metrics: AuthMetrics) -> io::Result<Self> {
        let file = path.map(AuditFile::open).transpose()?;
        Ok(Self { file: file.map(Arc::new), metrics })
    }

    /// Writes down that a change begins.
    ///
    /// # Errors
    /// The file can't be written: the change must not be made.
    pub async fn begin(&self, change: Change) -> Result<Begun, Error> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(Error::internal)?;
        let begun = Begun {
            id: hex::encode(id),
            change,
            file: self.file.clone(),
            metrics: self.metrics.clone(),
            is_told: false,
        };
        let Some(file) = begun.file.clone() else { return Ok(begun) };
        let line = begun.line("begins", "", None);
        let withdraws = begun.change.withdraws;
        let written = tokio::task::spawn_blocking(move || file.write(&line, withdraws)).await;
        match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => Ok(begun),
            Err(cause) => {
                self.metrics.audit_failed();
                let mut refused = begun;
                refused.is_told = true;
                Err(match is_full(&cause) {
                    true => Error::AuditFull(cause.into()),
                    false => Error::AuditUnavailable(cause.into()),
                })
            }
        }
    }

    /// Opens the file again on hangups, as who rotates it asks for, until `over`.
    pub async fn keep(&self, mut hangups: watch::Receiver<()>, over: CancellationToken) {
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                Ok(()) = hangups.changed() => {}
            }
            let Some(AuditFile { path, open, .. }) = self.file.as_deref() else { continue };
            match append_to(path) {
                Ok(file) => {
                    *open.lock().unwrap_or_else(PoisonError::into_inner) =
                        Open { file, torn: false };
                    info!("the audit file was opened again");
                }
                Err(problem) => {
                    error!(%problem, file = %path.display(), "the audit file can't be opened again: the one before is written on");
                }
            }
        }
    }
}

impl Begun {
    /// Tells what came of the change: an effect, or the reason why there is none.
    pub async fn ends(mut self, came: Result<Effect, &'static str>) {
        let (outcome, effect) = match came {
            Ok(effect) => ("done", effect),
            Err(reason) => (reason, Effect::default()),
        };
        self.is_told = true;
        let writing = self.tell(outcome, effect);
        if let Some(writing) = writing {
            // Who asked is told when it is on disk.
            writing.await.ok();
        }
    }

    fn tell(&self, outcome: &'static str, effect: Effect) -> Option<tokio::task::JoinHandle<()>> {
        let Change { act, tenant, of, actor, withdraws } = &self.change;
        let Actor { principal, credential, method } = actor;
        let Effect { revision, accepted, changed, removed, rejected, quarantined, approved } =
            effect;
        info!(
            target: "toolgate::audit", id = self.id, act, tenant, of, principal, credential, method, outcome, revision,
            accepted, changed, removed, rejected, quarantined, approved, "change"
        );
        let file = Arc::clone(self.file.as_ref()?);
        let withdraws = *withdraws;
        let line = self.line("ends", outcome, Some(effect));
        let metrics = self.metrics.clone();
        Some(tokio::task::spawn_blocking(move || match file.write(&line, withdraws) {
            Ok(()) => file.set_room_aside(),
            Err(problem) => {
                metrics.audit_failed();
                error!(%problem, "the end of a change could not be written to the audit file");
            }
        }))
    }

    fn line(&self, event: &'static str, outcome: &str, effect: Option<Effect>) -> Vec<u8> {
        let time = moment::now();
        let line = Line { time, id: &self.id, event, change: &self.change, outcome, effect };
        let mut text = serde_json::to_vec(&line).expect("texts and numbers are JSON");
        text.push(b'\n');
        text
    }
}

/// Cut off: by its deadline, its caller who left, or the server's end. Whether it was made is for the catalog to say.
impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_told && tokio::runtime::Handle::try_current().is_ok() {
            self.tell("cut_off", Effect::default());
        }
    }
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = append_to(path)?;
        let reserve = file.metadata()?.is_file().then(|| Reserve::beside(path, RESERVE));
        let open = Mutex::new(Open { file, torn: false });
        let opened = Self { path: path.to_owned(), open, reserve };
        opened.set_room_aside();
        Ok(opened)
    }

    /// The line is on disk when this returns.
    fn write(&self, line: &[u8], withdraws: bool) -> io::Result<()> {
        with_room(self.reserve.as_ref().filter(|_| withdraws), || write(&self.open, line))
    }

    fn set_room_aside(&self) {
        if let Some(reserve) = self.reserve.as_ref().filter(|reserve| reserve.is_missing()) {
            reserve.fill();
        }
    }
}

/// Does the work, and does it again with what `reserve` gives back if it finds no room.
fn with_room(
    reserve: Option<&Reserve>,
    mut work: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match work() {
        Err(error) if is_full(&error) && reserve.is_some_and(Reserve::release) => work(),
        outcome => outcome,
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The line is on disk when this returns.
fn write(open: &Mutex<Open>, line: &[u8]) -> io::Result<()> {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    if open.torn {
        open.file.write_all(b"\n")?;
    }
    open.torn = true;
    open.file.write_all(line)?;
    open.torn = false;
    open.file.sync_data()
}

#[cfg(test)]
mod tests;
