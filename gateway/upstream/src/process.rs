//! Processes that speak MCP on their standard streams, one JSON-RPC message a line.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::error::UpstreamError;
use crate::lines::{Line, Lines};
use crate::processes::{Processes, StartedProcess};
use crate::tap::{Ending, Tap};
use crate::target::Launch;

/// Bytes of standard error that are kept, the newest.
const STDERR_KEPT: usize = 64 << 10;

/// Lines of standard error that an error message repeats, and characters of all of them.
const LINES_SAID: usize = 5;
const SAID_MAX: usize = 300;

/// Bytes of a message beside its result: its ID, and its length in white space.
const ENVELOPE_MAX: usize = 1 << 10;

/// Bytes that are read at once.
const READ_AT_ONCE: usize = 64 << 10;

/// Time for what a process wrote before it ended. Processes that it started may hold its output open for ever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Time for a process that closed its output to end, and again for the end of what it wrote to standard error.
const LAST_ERRORS: Duration = Duration::from_secs(1);

/// Newest part of a process's standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct StandardError {
    kept: Arc<Mutex<Kept>>,
    /// Newest part of what principals' own processes write, by the tenant.
    of_tenants: Arc<Mutex<BTreeMap<String, Kept>>>,
    /// Name of its server.
    server: Arc<str>,
    /// Principal whose own process it is.
    principal: Option<Arc<str>>,
    /// Those who are told of its processes.
    processes: Processes,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Number of the last bytes that the newest process wrote.
    fresh: usize,
}

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
    processes: Processes,
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
        let mut command = command(launch, &stderr.processes).map_err(failed)?;
        command
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
        stderr.begin();
        let processes = stderr.processes.clone();
        if let Some(id) = child.id() {
            let StandardError { server, principal, .. } = &stderr;
            let principal = principal.as_deref();
            processes.started(StartedProcess { server, program: &launch.program, id, principal });
        }
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
            processes,
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

    /// Notes how the process ended, if it has, and waits for its last errors.
    async fn note_end(&mut self) {
        let Ok(Ok(status)) = tokio::time::timeout(LAST_ERRORS, self.child.wait()).await else {
            return;
        };
        self.tap.exited(status);
        self.kill();
        if !self.reading_stderr.is_finished() {
            // Processes of other groups may hold it open.
            let _open = tokio::time::timeout(LAST_ERRORS, &mut self.reading_stderr).await;
        }
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
        if let Some(group) = self.group.take() {
            self.processes.ended(group.as_raw_nonzero().get().unsigned_abs());
        }
    }
}

/// Returns the command of a process: its program, or the one by which it enters its sandbox.
fn command(launch: &Launch, processes: &Processes) -> io::Result<Command> {
    let Launch { program, arguments, sandbox, .. } = launch;
    let Some(sandbox) = sandbox else {
        let mut command = Command::new(program);
        command.args(arguments);
        return Ok(command);
    };
    let none = || io::Error::other("nothing here can have it enter its sandbox");
    let helper = processes.sandbox_helper().ok_or_else(none)?;
    let mut command = Command::new(&helper.program);
    command.args(helper.arguments_for(sandbox, program, arguments));
    Ok(command)
}

impl Transport<RoleClient> for ProcessTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        let call = self.tap.sending(&message);
        let is_handshake = matches!(
            &message,
            JsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_) | ClientRequest::InitializeRequest(_))
        );
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let stdin = stdin.as_mut().ok_or_else(closed)?;
            Tap::sent(call.as_ref());
            let written = async {
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            match written.await {
                // The end of its output follows, and says how it ended.
                Err(error) if is_handshake && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            }
        }
    }

    /// Returns the next message; `None` once the process has closed its output or ended. Lines that are no messages are
    /// skipped: some servers log to standard output. So are those beyond the limit, which end their call.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(line) = self.line().await else {
                self.note_end().await;
                self.tap.end();
                return None;
            };
            if let Some(message) = self.tap.read(&line, self.limits.result_bytes_max) {
                return Some(message);
            }
            if self.tap.is_known_late() {
                return None;
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

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(STDERR_KEPT);
        self.bytes.drain(..excess);
        self.fresh = (self.fresh + bytes.len()).min(STDERR_KEPT);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the tenant of a principal's name, which is `TENANT/PRINCIPAL`. No tenant's name has a slash.
pub(crate) fn tenant_of(principal: &str) -> &str {
    principal.split_once('/').map_or("", |(tenant, _)| tenant)
}

impl StandardError {
    /// Keeps what processes of a server write.
    pub(crate) fn of(server: &str, processes: Processes) -> Self {
        Self { server: Arc::from(server), processes, ..Self::default() }
    }

    /// Keeps what a principal's own process writes, for messages to this principal, and for those who read its tenant's logs.
    pub(crate) fn of_principal(&self, principal: &str) -> Self {
        Self { kept: Arc::default(), principal: Some(Arc::from(principal)), ..self.clone() }
    }

    async fn read(self, mut stderr: ChildStderr) {
        let mut buffer = vec![0; 4 << 10];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            self.add(&buffer[..count]);
        }
    }

    fn add(&self, bytes: &[u8]) {
        self.kept.lock().add(bytes);
        if let Some(principal) = &self.principal {
            let tenant = tenant_of(principal).to_owned();
            self.of_tenants.lock().entry(tenant).or_default().add(bytes);
        }
    }

    /// Says that a new process begins to write.
    fn begin(&self) {
        self.kept.lock().fresh = 0;
    }

    /// Returns what is kept: of the process that is nobody's own, and of those of a tenant's principals. With `None` it is of
    /// all tenants.
    pub(crate) fn text(&self, tenant: Option<&str>) -> String {
        let mut text = self.kept.lock().text();
        let of_tenants = self.of_tenants.lock();
        let is_its = |its: &&String| tenant.is_none_or(|tenant| tenant == its.as_str());
        for its in of_tenants.keys().filter(is_its) {
            text.push_str(&of_tenants[its].text());
        }
        text
    }

    /// Returns the last lines of the newest process as one, behind a semicolon, for the end of an error message; empty if there are none.
    pub(crate) fn said(&self) -> String {
        let kept = self.kept.lock();
        let bytes: Vec<u8> =
            kept.bytes.iter().skip(kept.bytes.len() - kept.fresh).copied().collect();
        drop(kept);
        let text = String::from_utf8_lossy(&bytes);
        let mut said = Vec::new();
        let mut left = SAID_MAX;
        for line in text.lines().rev().map(str::trim).filter(|line| !line.is_empty()) {
            // Terminals obey control characters.
            let shown: String = line.chars().filter(|c| !c.is_control()).take(left).collect();
            left -= shown.chars().count();
            said.push(shown);
            if said.len() == LINES_SAID || left == 0 {
                break;
            }
        }
        if said.is_empty() {
            return String::new();
        }
        said.reverse();
        format!("; its standard error ends with: {}", said.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_the_last_lines_without_control_characters() {
        let stderr = StandardError::default();
        assert_eq!(stderr.said(), "");
        stderr.add(b"1\n2\n\n3\n4\n\x1b[31m5\x07\n6\xff\n");
        let said = stderr.said();
        assert_eq!(said, "; its standard error ends with: 2 | 3 | 4 | [31m5 | 6\u{fffd}");
        stderr.add("x".repeat(1_000).as_bytes());
        assert!(stderr.said().chars().count() < 400);
        stderr.begin();
        assert_eq!(stderr.said(), "");
    }

    #[test]
    fn no_error_tells_what_another_principals_process_wrote() {
        let shared = StandardError::default();
        shared.add(b"shared\n");
        let ann = shared.of_principal("acme/ann");
        let bob = shared.of_principal("acme/bob");
        ann.add(b"ann's\n");
        assert_eq!(ann.said(), "; its standard error ends with: ann's");
        assert_eq!(bob.said(), "");
        assert_eq!(shared.said(), "; its standard error ends with: shared");
    }

    #[test]
    fn a_tenant_reads_no_lines_of_another_tenants_processes() {
        let shared = StandardError::default();
        shared.of_principal("acme/ann").add(b"ann's\n");
        shared.of_principal("umbrella/eve").add(b"eve's\n");
        shared.add(b"shared\n");
        shared.of_principal("acme/bob").add(b"bob's\n");
        assert_eq!(shared.text(Some("acme")), "shared\nann's\nbob's\n");
        assert_eq!(shared.text(Some("umbrella")), "shared\neve's\n");
        assert_eq!(shared.text(Some("other")), "shared\n");
        assert_eq!(shared.text(None), "shared\nann's\nbob's\neve's\n");
    }
}
