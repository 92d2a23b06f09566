//! One worker process: its start, its log lines and its end.

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tracing::debug;

use super::command::{VISIBLE_GPUS, WorkerCommand};
use super::said;

/// Reason for which a process ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Stopped by the supervisor.
    Stopped,
    /// Exit by itself or by a signal.
    Exited(ExitStatus),
    /// Failure to start.
    NotStarted(io::Error),
    /// No address in time; the process was killed.
    Silent,
    /// Process that can't be waited for; it was killed.
    Lost(io::Error),
}

/// Longest line of standard error, in bytes.
const LINE_MAX: u64 = 64 * 1024;

/// Exit codes of the worker after which a restart would fail in the same way: an unknown command line, a model that
/// can't be loaded, or a device that can't be used.
const FINAL: [i32; 2] = [2, 3];

impl Ended {
    /// Returns true if a restart would not help.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Exited(status) if status.code().is_some_and(|code| FINAL.contains(&code)))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => formatter.write_str("stopped"),
            Self::Exited(status) => status.fmt(formatter),
            Self::NotStarted(error) => write!(formatter, "it can't be started: {error}"),
            Self::Silent => formatter.write_str("it never said where it listens"),
            Self::Lost(error) => write!(formatter, "it can't be waited for: {error}"),
        }
    }
}

/// A process that is killed when this is dropped.
pub(super) struct Process {
    worker: String,
    child: Child,
    stderr: Option<BufReader<ChildStderr>>,
    /// Held open. It closes when this server ends in any way, which tells the worker to end.
    _alive: Option<ChildStdin>,
}

impl WorkerCommand {
    pub(super) fn spawn(&self) -> io::Result<Process> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        // The worker gets the model's directory, so a model name from the environment would conflict with it.
        command.env_remove("TOOLGATE_WORKER_MODEL");
        if let Some(gpu) = &self.gpu {
            command.env(VISIBLE_GPUS, gpu);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C in a terminal goes to the whole process group, but the worker is needed until calls are drained.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let alive = child.stdin.take();
        let stderr = child.stderr.take().map(BufReader::new);
        Ok(Process { worker: self.name.clone(), child, stderr, _alive: alive })
    }
}

impl Process {
    /// Waits until the process reports its address.
    pub(super) async fn listening(&mut self) -> Result<String, Ended> {
        loop {
            match self.next_line().await {
                Some(line) => {
                    if let Some(address) = said::repeat(&self.worker, &line) {
                        return Ok(address.to_string());
                    }
                }
                None => return Err(self.ended().await),
            }
        }
    }

    /// Repeats its log lines until it ends.
    pub(super) async fn ended(&mut self) -> Ended {
        while let Some(line) = self.next_line().await {
            said::repeat(&self.worker, &line);
        }
        self.child.wait().await.map_or_else(Ended::Lost, Ended::Exited)
    }

    /// Stops the process: SIGTERM first, then SIGKILL after `grace`.
    pub(super) async fn stop(&mut self, grace: Duration) {
        self.terminate();
        if tokio::time::timeout(grace, self.ended()).await.is_err()
            && let Err(error) = self.child.kill().await
        {
            debug!(%error, "the worker process can't be killed");
        }
    }

    #[cfg(unix)]
    fn terminate(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // It may have ended by itself in the meantime.
        if let Some(Err(error)) = id.map(|id| kill_process(id, Signal::TERM)) {
            debug!(%error, "the worker process can't be told to end");
        }
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) {
        if let Err(error) = self.child.start_kill() {
            debug!(%error, "the worker process can't be told to end");
        }
    }

    /// Returns the next line of standard error, or `None` at its end.
    async fn next_line(&mut self) -> Option<String> {
        let stderr = self.stderr.as_mut()?;
        let mut line = Vec::new();
        // A library may write anything. A line beyond the limit is split.
        let read = stderr.take(LINE_MAX).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            self.stderr = None;
            return None;
        }
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}
