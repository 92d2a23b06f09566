//! Limits that the system sets for the process (`ulimit`). Callers must not notice them.

#[cfg(unix)]
use rustix::process::{Resource, Signal, getrlimit, setrlimit};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// Makes a write beyond the limit on file sizes (`ulimit -f`, RLIMIT_FSIZE) fail like a write to a full disk. Without
/// this, SIGXFSZ ends the process. Must be called within a tokio runtime; the handler stays for the life of the
/// process.
pub fn outlive_file_size_limit() {
    #[cfg(unix)]
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "SIGXFSZ can't be handled: a limit on file sizes would end the process");
    }
}

/// Raises the number of open files to the most that the system allows (`ulimit -Hn`, RLIMIT_NOFILE), for the process
/// and for the processes that it starts. Each connection takes one file. By default a process begins with 1,024, for
/// the sake of programs that call select(2). A failure is logged.
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
