//! The audit of calls and of the ends of their tasks, of prompts and resources that are fetched, of persons' logins and of
//! processes that are started: one line of JSON for each, without arguments and results.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolgate_upstream::StartedProcess;

use crate::caller::Caller;
use crate::gathered::Kind;

/// Audit of calls; of none without a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audit(Option<Arc<Mutex<File>>>);

/// Most bytes of the scheme of a URI.
const SCHEME_MAX: usize = 32;

/// Record of a call, or of a prompt or resource that is fetched.
#[derive(Debug, Clone, Serialize)]
struct CallRecord {
    /// Milliseconds since 1970 (UTC) at which the call came, or at which the end of its task was seen.
    time_ms: u64,
    event: &'static str,
    tenant: String,
    principal: String,
    /// Public id of the credential.
    credential: String,
    /// Server that is asked; empty if the request was refused before that was known.
    server: String,
    #[serde(flatten)]
    subject: Subject,
    /// `allowed`, or the code of the refusal.
    verdict: &'static str,
    outcome: Outcome,
    duration_ms: u64,
    /// SHA-256 of the arguments' JSON, in hexadecimal; empty if there are none.
    arguments: String,
    argument_bytes: usize,
    result_bytes: usize,
}

/// Part of a server that is asked for.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Subject {
    Tool {
        /// Tool as its server names it; empty like the server.
        tool: String,
        /// SHA-256 of the definition as the server lists it, in hexadecimal; empty if it is not known.
        definition: String,
    },
    Prompt {
        /// Prompt as its server names it, or as the host does where there is no such server.
        prompt: String,
    },
    Resource {
        /// Scheme of the URI. The rest may hold secrets, or what somebody looks for.
        scheme: String,
        /// SHA-256 of the URI as its server knows it, in hexadecimal.
        uri: String,
    },
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// The server answered with a result.
    Done,
    /// The server answered with a task, whose end has a record of its own.
    Begun,
    /// The server answered with a result that tells an error.
    Error,
    /// The server gave no answer, or none that is a result.
    Failed,
    /// The call was not sent.
    Refused,
    /// The server answered, and the gateway kept its answer back.
    KeptBack,
    /// The host left, or cancelled the call.
    Cancelled,
}

/// Task whose end was seen.
pub(crate) struct EndedTask<'a> {
    pub(crate) server: &'a str,
    /// Tool whose call began it.
    pub(crate) tool: &'a str,
    /// SHA-256 of the definition, as for a call.
    pub(crate) definition: &'a str,
    /// Time since it was begun.
    pub(crate) duration: Duration,
    pub(crate) outcome: Outcome,
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
        let subject = Subject::Tool { tool: String::new(), definition: String::new() };
        self.begin_of("call", caller, subject, arguments)
    }

    /// Begins the record of a request that fetches a prompt or a resource.
    pub(crate) fn begin_fetch(
        &self,
        caller: &Caller,
        kind: Kind,
        params: &Map<String, Value>,
    ) -> AuditedCall {
        let name = params.get(kind.key()).and_then(Value::as_str).unwrap_or_default();
        match kind {
            Kind::Prompts => {
                let subject = Subject::Prompt { prompt: name.to_owned() };
                self.begin_of("prompt", caller, subject, params.get("arguments"))
            }
            Kind::Resources | Kind::Templates => {
                let uri = hex::encode(Sha256::digest(name));
                let subject = Subject::Resource { scheme: scheme_of(name), uri };
                self.begin_of("resource", caller, subject, None)
            }
        }
    }

    /// Writes the record of a task that has ended, before its state is told.
    pub(crate) async fn task_ended(&self, caller: &Caller, task: EndedTask<'_>) {
        let EndedTask { server, tool, definition, duration, outcome } = task;
        let subject = Subject::Tool { tool: tool.to_owned(), definition: definition.to_owned() };
        let mut ended = self.begin_of("task", caller, subject, None);
        ended.is_at(server);
        ended.since = ended.since.checked_sub(duration).unwrap_or(ended.since);
        ended.ends(outcome, 0).await;
    }

    fn begin_of(
        &self,
        event: &'static str,
        caller: &Caller,
        subject: Subject,
        arguments: Option<&Value>,
    ) -> AuditedCall {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let arguments = self.0.as_ref().and(arguments).map(Value::to_string);
        let record = CallRecord {
            time_ms: milliseconds(now),
            event,
            tenant: caller.tenant.to_string(),
            principal: caller.principal.to_string(),
            credential: caller.credential.to_string(),
            server: String::new(),
            subject,
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
        // No tenant's name has a slash.
        let whose = process.principal.unwrap_or_default();
        let (tenant, principal) = whose.split_once('/').unwrap_or_default();
        let record = StartRecord {
            time_ms: milliseconds(now),
            event: "start",
            server: process.server.to_owned(),
            program: process.program.to_owned(),
            process: process.id,
            tenant: tenant.to_owned(),
            principal: principal.to_owned(),
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
    /// Tenant and name of the principal whose own it is; empty if it is nobody's.
    tenant: String,
    principal: String,
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
        self.record.subject = Subject::Tool {
            tool: tool.to_owned(),
            definition: definition.unwrap_or_default().to_owned(),
        };
    }

    /// Notes the server that is asked.
    pub(crate) fn is_at(&mut self, server: &str) {
        server.clone_into(&mut self.record.server);
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

/// Returns the scheme of a URI; empty if it has none.
fn scheme_of(uri: &str) -> String {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    let scheme =
        scheme.filter(|scheme| scheme.len() <= SCHEME_MAX && scheme.chars().all(is_of_scheme));
    scheme.unwrap_or_default().to_owned()
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

    #[tokio::test]
    async fn the_end_of_a_task_is_a_line_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).expect("a file");
        let caller = Caller { principal: "ann".into(), ..Caller::default() };
        let ended = EndedTask {
            server: "mine",
            tool: "dig",
            definition: "00ff",
            duration: Duration::from_secs(3),
            outcome: Outcome::Error,
        };
        audit.task_ended(&caller, ended).await;
        let text = std::fs::read_to_string(&path).expect("a file");
        let line: Value = serde_json::from_str(&text).expect("one line of JSON");
        assert_eq!([&line["event"], &line["outcome"]], ["task", "error"]);
        assert_eq!([&line["server"], &line["tool"], &line["principal"]], ["mine", "dig", "ann"]);
        assert!(line["duration_ms"].as_u64() >= Some(3_000), "{line}");
    }

    #[tokio::test]
    async fn a_fetched_prompt_or_resource_is_one_line_without_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).expect("a file");
        let caller = Caller { principal: "ann".into(), ..Caller::default() };
        let requests = [
            (Kind::Prompts, json!({"name": "review", "arguments": {"text": "secret"}})),
            (Kind::Resources, json!({"uri": "db://ann:secret@host/secret?token=secret"})),
        ];
        for (kind, params) in requests {
            let params = params.as_object().expect("an object");
            let mut fetched = audit.begin_fetch(&caller, kind, params);
            fetched.is_at("notes");
            fetched.ends(Outcome::Done, 20).await;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(!text.contains("secret"), "{text}");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!([&lines[0]["event"], &lines[1]["event"]], ["prompt", "resource"]);
        assert_eq!([&lines[0]["server"], &lines[1]["server"]], ["notes", "notes"]);
        assert_eq!(lines[0]["prompt"], "review");
        assert_eq!(lines[0]["argument_bytes"], 17);
        assert_eq!(lines[1]["scheme"], "db");
        let digest = hex::encode(Sha256::digest("db://ann:secret@host/secret?token=secret"));
        assert_eq!(lines[1]["uri"], digest.as_str());
    }

    #[test]
    fn what_is_no_scheme_is_not_told() {
        assert_eq!(scheme_of("file:///a"), "file");
        assert_eq!(scheme_of("a secret: b"), "");
        assert_eq!(scheme_of("no scheme"), "");
        assert_eq!(scheme_of(&format!("{}:x", "s".repeat(SCHEME_MAX + 1))), "");
    }
}
