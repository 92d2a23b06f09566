//! Processes that speak MCP on their standard streams, one JSON-RPC message a line.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::error::UpstreamError;
use crate::lines::{Line, Lines};
use crate::tap::{Ending, Tap};
use crate::target::Launch;

/// Bytes of standard error that are kept, the newest.
const STDERR_KEPT: usize = 64 << 10;

/// Lines of standard error that an error message repeats, and characters of each.
const LINES_SAID: usize = 5;
const LINE_SAID_MAX: usize = 300;

/// Bytes of a message beside its result: its ID, and its length in white space.
const ENVELOPE_MAX: usize = 1 << 10;

/// Bytes that are read at once.
const READ_AT_ONCE: usize = 64 << 10;

/// Time for what a process wrote before it ended. Processes that it started may hold its output open for ever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Newest part of a process's standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct StandardError(Arc<Mutex<VecDeque<u8>>>);

/// Transport to a process. The process and those that it started end with it.
pub(crate) struct ProcessTransport {
    child: Child,
    /// Its process group; `None` once all of it was killed.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    lines: Lines<BufReader<ChildStdout>>,
    tap: Tap,
    _ending: Ending,
    reading_stderr: JoinHandle<()>,
    limits: ProcessLimits,
}

/// Bounds of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessLimits {
    /// Largest result, in bytes.
    pub(crate) result_bytes_max: usize,
    /// Time for the process to leave after its standard input was closed, and again after SIGTERM.
    pub(crate) leave: Duration,
}

impl ProcessTransport {
    /// Starts the process, in a process group of its own.
    pub(crate) fn start(
        launch: &Launch,
        tap: Tap,
        stderr: StandardError,
        limits: ProcessLimits,
    ) -> Result<Self, UpstreamError> {
        let failed = |source| UpstreamError::Spawn { program: launch.program.clone(), source };
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .env_clear()
            .envs(&launch.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &launch.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        #[cfg(unix)]
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let missing = || failed(io::Error::other("a standard stream is missing"));
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let reading = child.stderr.take().ok_or_else(missing)?;
        Ok(Self {
            child,
            #[cfg(unix)]
            group: group.and_then(rustix::process::Pid::from_raw),
            stdin: Arc::new(tokio::sync::Mutex::new(Some(stdin))),
            lines: Lines::new(
                BufReader::with_capacity(READ_AT_ONCE, stdout),
                limits.result_bytes_max.saturating_add(ENVELOPE_MAX),
            ),
            _ending: Ending(tap.clone()),
            tap,
            reading_stderr: tokio::spawn(stderr.read(reading)),
            limits,
        })
    }

    async fn has_left(&mut self) -> bool {
        matches!(tokio::time::timeout(self.limits.leave, self.child.wait()).await, Ok(Ok(_)))
    }

    /// Returns the next line; `None` once the process has closed its output or ended.
    async fn line(&mut self) -> Option<Line> {
        let line = tokio::select! {
            biased;
            line = self.lines.next() => line,
            _ended = self.child.wait() => {
                let line = tokio::time::timeout(LAST_WORDS, self.lines.next()).await;
                if !matches!(line, Ok(Ok(Some(_)))) {
                    self.kill();
                }
                line.unwrap_or(Ok(None))
            }
        };
        line.ok().flatten()
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group {
            // The group may be gone already.
            let _gone = rustix::process::kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        // The process may be gone already.
        let _gone = self.child.start_kill();
    }

    /// Kills all of the group, once: its number may be another's afterwards.
    #[cfg(unix)]
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.group = None;
    }
}

impl Transport<RoleClient> for ProcessTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        let call = self.tap.sending(&message);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let stdin = stdin.as_mut().ok_or_else(closed)?;
            Tap::sent(call.as_ref());
            stdin.write_all(&line).await?;
            stdin.flush().await
        }
    }

    /// Returns the next message; `None` once the process has closed its output or ended. Lines that are no messages are
    /// skipped: some servers log to standard output. So are those beyond the limit, which end their call.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(line) = self.line().await else {
                self.tap.end();
                return None;
            };
            if let Some(message) = self.tap.read(&line, self.limits.result_bytes_max) {
                return Some(message);
            }
        }
    }

    /// Closes standard input and waits for the process to leave; ends its group by SIGTERM, then SIGKILL.
    async fn close(&mut self) -> Result<(), io::Error> {
        self.tap.end();
        // A write to a process that does not read holds it.
        if let Ok(mut stdin) = tokio::time::timeout(self.limits.leave, self.stdin.lock()).await {
            stdin.take();
        }
        #[cfg(unix)]
        {
            if self.has_left().await {
                self.kill();
                return Ok(());
            }
            self.signal(rustix::process::Signal::TERM);
        }
        let has_left = self.has_left().await;
        self.kill();
        if !has_left {
            self.child.wait().await?;
        }
        Ok(())
    }
}

impl Drop for ProcessTransport {
    fn drop(&mut self) {
        self.reading_stderr.abort();
        self.kill();
    }
}

impl StandardError {
    async fn read(self, mut stderr: ChildStderr) {
        let mut buffer = vec![0; 4 << 10];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            let mut kept = self.0.lock();
            kept.extend(buffer.iter().take(count));
            let excess = kept.len().saturating_sub(STDERR_KEPT);
            kept.drain(..excess);
        }
    }

    /// Returns what is kept.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the last lines, behind a line break, for the end of an error message; empty if there are none.
    pub(crate) fn said(&self) -> String {
        let text = self.text();
        let mut lines: Vec<&str> =
            text.lines().rev().filter(|line| !line.trim().is_empty()).take(LINES_SAID).collect();
        if lines.is_empty() {
            return String::new();
        }
        lines.reverse();
        let mut said = String::from("\nits standard error ends with:");
        for line in lines {
            // Terminals obey control characters.
            let shown = line.chars().filter(|c| !c.is_control()).take(LINE_SAID_MAX);
            said.push_str("\n  ");
            said.extend(shown);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_the_last_lines_without_control_characters() {
        let stderr = StandardError::default();
        assert_eq!(stderr.said(), "");
        stderr.0.lock().extend(b"1\n2\n\n3\n4\n\x1b[31m5\x07\n6\xff\n");
        let said = stderr.said();
        assert!(said.ends_with("\n  2\n  3\n  4\n  [31m5\n  6\u{fffd}"), "{said:?}");
        assert!(!said.contains("\n  1"));
    }
}
