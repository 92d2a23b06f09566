//! Audit trail: one event for each change to a catalog, a policy, memory or an API key. Events go to the log (target
//! `toolgate::audit`) and to a file if one is configured. They contain no definitions, no documents and no secrets.
//!
//! The file gets two lines for a change: one before it, without which the change is not made, and one after it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::auth::AuthMetrics;
use toolgate_core::error::Error;
use toolgate_store::reserve::{Reserve, is_full};

mod moment;

/// Disk space reserved beside the file, in bytes: enough for some hundred changes.
const RESERVE: u64 = 256 << 10;

/// Caller that makes a change.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Actor {
    /// Name of the caller within the tenant; empty while authentication is off.
    pub principal: String,
    /// Public id of the credential.
    pub credential: String,
    /// Authentication method of the caller.
    pub method: &'static str,
}

/// Change as requested.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Name of the call, such as `CatalogService/RegisterServer` or `toolgate key create`.
    pub act: &'static str,
    /// Tenant whose content changes; empty if the content belongs to no tenant.
    pub tenant: String,
    /// MCP server or API key concerned; empty if there is none.
    pub of: String,
    /// Caller that makes the change.
    #[serde(flatten)]
    pub actor: Actor,
    /// True if the change deletes content or forbids something. On a full disk, its events get the reserved space.
    #[serde(skip)]
    pub withdraws: bool,
}

/// Result of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// Catalog revision of the change, if it has one.
    pub revision: Option<u64>,
    /// Number of new tools.
    pub accepted: usize,
    /// Number of changed tools.
    pub changed: usize,
    /// Number of removed tools or deleted exemplars.
    pub removed: usize,
    /// Number of tools that were not stored.
    pub rejected: usize,
    /// Number of tools that wait for approval.
    pub quarantined: usize,
    /// Number of tools that were approved by the change.
    pub approved: usize,
}

/// Audit trail of a server.
pub struct Audit {
    file: Option<Arc<AuditFile>>,
    metrics: AuthMetrics,
}

/// Audit file of a server.
struct AuditFile {
    path: PathBuf,
    open: Mutex<Open>,
    /// Reserved disk space; `None` if the path is not a regular file, for example a pipe.
    reserve: Option<Reserve>,
}

struct Open {
    file: File,
    /// True if the last line may be incomplete.
    torn: bool,
}

/// AuditLine of the file.
#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    /// Id that both lines of a change share.
    id: &'a str,
    event: &'static str,
    #[serde(flatten)]
    change: &'a Change,
    #[serde(skip_serializing_if = "str::is_empty")]
    outcome: &'a str,
    #[serde(flatten)]
    effect: Option<Effect>,
}

/// Change that was recorded before it is made. Dropped before [`Begun::ends`], it is recorded as cut off.
pub struct Begun {
    id: String,
    change: Change,
    file: Option<Arc<AuditFile>>,
    metrics: AuthMetrics,
    is_told: bool,
}

impl Audit {
    /// Opens an audit trail to the log, and to this file if there is one.
    ///
    /// # Errors
    /// The file can't be opened for appending.
    pub fn open(path: Option<&Path>, metrics: AuthMetrics) -> io::Result<Self> {
        let file = path.map(AuditFile::open).transpose()?;
        Ok(Self { file: file.map(Arc::new), metrics })
    }

    /// Records that a change begins.
    ///
    /// # Errors
    /// The file can't be written. The change must not be made then.
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

    /// Opens the file again on hangups, as log rotation requires, until `over` is cancelled.
    pub async fn keep(&self, mut hangups: watch::Receiver<()>, over: CancellationToken) {
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                Ok(()) = hangups.changed() => {}
            }
            let Some(AuditFile { path, open, .. }) = self.file.as_deref() else { continue };
            match append_to(path) {
                Ok(file) => {
                    *open.lock() = Open { file, torn: false };
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
    /// Records the result of the change: an effect, or the reason that there is none.
    pub async fn ends(mut self, came: Result<Effect, &'static str>) {
        let (outcome, effect) = match came {
            Ok(effect) => ("done", effect),
            Err(reason) => (reason, Effect::default()),
        };
        self.is_told = true;
        let writing = self.tell(outcome, effect);
        if let Some(writing) = writing {
            // Answer the caller only after the line is on disk.
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
        let line = AuditLine { time, id: &self.id, event, change: &self.change, outcome, effect };
        let mut text = serde_json::to_vec(&line).expect("texts and numbers are JSON");
        text.push(b'\n');
        text
    }
}

/// Records a change that was cut off by its deadline, by a caller that left, or by the end of the server. The catalog
/// shows if the change was made.
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

    /// Writes a line. The line is on disk when this returns.
    fn write(&self, line: &[u8], withdraws: bool) -> io::Result<()> {
        with_room(self.reserve.as_ref().filter(|_| withdraws), || write(&self.open, line))
    }

    fn set_room_aside(&self) {
        if let Some(reserve) = self.reserve.as_ref().filter(|reserve| reserve.is_missing()) {
            reserve.fill();
        }
    }
}

/// Runs the work. If the disk is full, releases `reserve` and runs it again.
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

/// Writes a line. The line is on disk when this returns.
fn write(open: &Mutex<Open>, line: &[u8]) -> io::Result<()> {
    let mut open = open.lock();
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
