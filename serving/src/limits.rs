//! What the system lets the process have (`ulimit`), and what callers must not notice of it.

#[cfg(unix)]
use rustix::process::{Resource, Signal, getrlimit, setrlimit};
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

/// Has the process, and what it starts from now on, open as many files as the system allows it (`ulimit -Hn`,
/// RLIMIT_NOFILE). Each connection is one; where nobody said otherwise, a process begins with 1,024, for the sake
/// of programs that call select(2). A refusal is logged.
pub fn open_as_many_files_as_allowed() {
    #[cfg(unix)]
    {
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current == limit.maximum {
            return;
        }
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit on open files can't be raised");
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_may_be_open_as_the_system_allows() {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(512);
        setrlimit(Resource::Nofile, limit).expect("less is always allowed");
        open_as_many_files_as_allowed();
        let raised = getrlimit(Resource::Nofile);
        assert_eq!((raised.current, raised.maximum), (limit.maximum, limit.maximum));
    }
}
