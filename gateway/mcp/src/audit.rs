//! The audit of calls, of persons' logins and of processes that are started: one line of JSON for each, without arguments and
//! results.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolgate_upstream::StartedProcess;

use crate::caller::Caller;

/// Audit of calls; of none without a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audit(Option<Arc<Mutex<File>>>);

/// Record of a call.
#[derive(Debug, Clone, Serialize)]
struct CallRecord {
    /// Milliseconds since 1970 (UTC) at which the call came.
    time_ms: u64,
    event: &'static str,
    tenant: String,
    principal: String,
    /// Public id of the credential.
    credential: String,
    /// Server of the tool; empty if the call was refused before that was known.
    server: String,
    /// Tool as its server names it; empty like the server.
    tool: String,
    /// SHA-256 of the definition as the server lists it, in hexadecimal; empty if it is not known.
    definition: String,
    /// `allowed`, or the code of the refusal.
    verdict: &'static str,
    outcome: Outcome,
    duration_ms: u64,
    /// SHA-256 of the arguments' JSON, in hexadecimal; empty if there are none.
    arguments: String,
    argument_bytes: usize,
    result_bytes: usize,
}

/// End of a call.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// The server answered with a result.
    Done,
    /// The server answered with a result that tells an error.
    Error,
    /// The server gave no answer, or none that is a result.
    Failed,
    /// The call was not sent.
    Refused,
    /// The host left, or cancelled the call.
    Cancelled,
}

/// Call that is audited. Dropped before [`AuditedCall::ends`], it is noted as cancelled.
pub(crate) struct AuditedCall {
    record: CallRecord,
    file: Option<Arc<Mutex<File>>>,
    since: Instant,
}

impl Audit {
    /// Opens the audit of a gateway.
    ///
    /// # Errors
    /// The file can't be opened for appending.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self(Some(Arc::new(Mutex::new(options.open(path)?)))))
    }

    /// Begins the record of a call.
    pub(crate) fn begin(&self, caller: &Caller, arguments: Option<&Value>) -> AuditedCall {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let arguments = self.0.as_ref().and(arguments).map(Value::to_string);
        let record = CallRecord {
            time_ms: milliseconds(now),
            event: "call",
            tenant: caller.tenant.to_string(),
            principal: caller.principal.to_string(),
            credential: caller.credential.to_string(),
            server: String::new(),
            tool: String::new(),
            definition: String::new(),
            verdict: "allowed",
            outcome: Outcome::Cancelled,
            duration_ms: 0,
            arguments: arguments
                .as_ref()
                .map_or_else(String::new, |arguments| hex::encode(Sha256::digest(arguments))),
            argument_bytes: arguments.as_ref().map_or(0, String::len),
            result_bytes: 0,
        };
        AuditedCall { record, file: self.0.clone(), since: Instant::now() }
    }

    /// Notes that a process was started for a server.
    pub(crate) fn started(&self, process: StartedProcess<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = StartRecord {
            time_ms: milliseconds(now),
            event: "start",
            server: process.server.to_owned(),
            program: process.program.to_owned(),
            process: process.id,
        };
        let written = self.0.clone().zip(Handle::try_current().ok());
        // Nobody waits for it.
        let _writing = written.map(|(file, runtime)| append(&runtime, file, record));
    }

    /// Notes that a person has connected to a server, or that it failed.
    pub(crate) fn connection(&self, caller: &Caller, server: &str, is_done: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = ConnectionRecord {
            time_ms: milliseconds(now),
            event: "connection",
            tenant: caller.tenant.to_string(),
            principal: caller.principal.to_string(),
            server: server.to_owned(),
            outcome: if is_done { Outcome::Done } else { Outcome::Failed },
        };
        let written = self.0.clone().zip(Handle::try_current().ok());
        // Nobody waits for it.
        let _writing = written.map(|(file, runtime)| append(&runtime, file, record));
    }
}

/// Record of a process that was started for a server.
#[derive(Debug, Clone, Serialize)]
struct StartRecord {
    time_ms: u64,
    event: &'static str,
    server: String,
    /// Program, as its entry names it. Its arguments may hold secrets.
    program: String,
    /// Identifier of the process.
    process: u32,
}

/// Record of a person's login to a server.
#[derive(Debug, Clone, Serialize)]
struct ConnectionRecord {
    time_ms: u64,
    event: &'static str,
    tenant: String,
    principal: String,
    server: String,
    outcome: Outcome,
}

impl AuditedCall {
    /// Notes the tool that is called.
    pub(crate) fn is_of(&mut self, server: &str, tool: &str, definition: Option<&str>) {
        server.clone_into(&mut self.record.server);
        tool.clone_into(&mut self.record.tool);
        definition.unwrap_or_default().clone_into(&mut self.record.definition);
    }

    /// Notes that the call is not sent, and why.
    pub(crate) fn is_refused(&mut self, code: &'static str) {
        self.record.verdict = code;
    }

    /// Writes the record of a call that has ended, before its result is told.
    pub(crate) async fn ends(mut self, outcome: Outcome, result_bytes: usize) {
        self.record.outcome = outcome;
        self.record.result_bytes = result_bytes;
        if let Some(writing) = self.write() {
            // A record that was not written has been told.
            let _written = writing.await;
        }
    }

    fn write(&mut self) -> Option<JoinHandle<()>> {
        let file = self.file.take()?;
        let runtime = Handle::try_current().ok()?;
        let mut record = self.record.clone();
        record.duration_ms = milliseconds(self.since.elapsed());
        Some(append(&runtime, file, record))
    }
}

/// Appends a record to the file of the audit.
fn append(
    runtime: &Handle,
    file: Arc<Mutex<File>>,
    record: impl Serialize + Send + 'static,
) -> JoinHandle<()> {
    runtime.spawn_blocking(move || {
        let written = serde_json::to_vec(&record).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            file.lock().write_all(&line)
        });
        if let Err(error) = written {
            tracing::error!(%error, "a record could not be written to gateway.audit_file");
        }
    })
}

impl Drop for AuditedCall {
    fn drop(&mut self) {
        // Nobody waits for it.
        let _writing = self.write();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_call_is_one_line_without_words() {
        let path = std::env::temp_dir().join(format!("toolgate-audit-{}", std::process::id()));
        let audit = Audit::open(Some(&path)).expect("a file");
        let caller = Caller { principal: "ann\n".into(), ..Caller::default() };
        let mut call = audit.begin(&caller, Some(&json!({"text": "secret"})));
        call.is_of("notes", "keep_note", Some("00ff"));
        call.ends(Outcome::Done, 20).await;
        let mut refused = audit.begin(&caller, None);
        refused.is_refused("UNKNOWN_TOOL");
        refused.ends(Outcome::Refused, 2).await;
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::remove_file(&path).expect("a file");
        assert!(!text.contains("secret"), "{text}");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["principal"], "ann\n");
        assert_eq!(lines[0]["argument_bytes"], 17);
        let digest = hex::encode(Sha256::digest(br#"{"text":"secret"}"#));
        assert_eq!(lines[0]["arguments"], digest.as_str());
        assert_eq!(lines[1]["arguments"], "");
        assert_eq!(lines[0]["outcome"], "done");
        assert_eq!(lines[1]["verdict"], "UNKNOWN_TOOL");
    }
}
