//! Signals that must not end a process that has callers.

#[cfg(unix)]
use rustix::process::Signal;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// From now on, a write beyond the limit on file sizes (`ulimit -f`, RLIMIT_FSIZE) fails as one to a full
/// disk does, instead of ending the process: that is what SIGXFSZ does to one that does not handle it. To
/// be called within a runtime; its handler stays for the life of the process.
pub fn outlive_file_size_limit() {
    #[cfg(unix)]
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "SIGXFSZ can't be handled: a limit on file sizes would end the process");
    }
}
