//! Tasks of servers: calls that a host looks after by an ID. The gateway's IDs say whose a task is, and are good for one
//! principal. Here are those of the extension of 2026-07-28.

pub(crate) mod begun;
pub(crate) mod older;
mod starting;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use rmcp::model::{ClientCapabilities, ErrorCode, ErrorData, TASKS_EXTENSION_ID};
use serde_json::{Map, Value};

use crate::audit::{EndedTask, Outcome};
use crate::caller::{Caller, Owner};
use crate::gateway::Gateway;
use crate::host::{Failure, Host, is_modern};
use crate::raw::RawObject;
use crate::results::Results;
use crate::sealed::{Content, Purpose};
use crate::{calling, cutting, gathered};
use begun::{BegunTask, TaskId};
use starting::{Begun, Started};

/// Methods about tasks, of both revisions that have some.
pub(crate) const METHODS: [&str; 5] = [CANCEL, GET, older::LIST, older::RESULT, "tasks/update"];

const GET: &str = "tasks/get";
const CANCEL: &str = "tasks/cancel";

/// Field of a task's ID in parameters and results.
const ID: &str = "taskId";

/// Time for which an ID is good. Servers keep tasks for less.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Time for a server to answer a call that may become a task and whose host has left. The server says by its answer alone whether
/// the call is one, and one that is none runs on for as long.
const ID_AWAITED: Duration = Duration::from_secs(10);

/// Result of a request about a task.
pub(crate) struct Answered {
    /// Server of the task; empty if it is of several.
    pub(crate) server: String,
    pub(crate) result: RawObject,
}

/// Returns true if the answer to a call stands for a task.
pub(crate) fn is_begun(result: &RawObject) -> bool {
    result.is("resultType", "task") || older::is_begun(result)
}

/// Returns true if the answer to a request of a host of 2026-07-28 may be a task.
pub(crate) fn may_begin(host: &Host<'_>, server: &str, method: &str) -> bool {
    method == "tools/call"
        && host.capabilities().supports_tasks()
        && are_offered(host.gateway, server)
}

/// Sends a call that may become a task. If its host leaves before the server has told the task's ID, the task is cancelled by it.
/// Returns the answer, and the process that gave it.
pub(crate) async fn begin(
    host: &Host<'_>,
    server: &str,
    params: Map<String, Value>,
) -> Result<(RawObject, Option<u64>), Failure> {
    let started = starting::start(host, server, params, ID_AWAITED, task_in).await?;
    let Started { result, task, process } = started;
    if let Some(mut task) = task {
        task.unheeded.is_heeded();
    }
    Ok((result, process))
}

/// Returns the task that an answer stands for.
fn task_in(result: &RawObject) -> Option<Begun> {
    let id = result.is("resultType", "task").then(|| result.text(ID)).flatten();
    id.map(|id| Begun { id: id.into_owned(), state: RawObject::default() })
}

/// Sets the gateway's own ID in a result that is a task, and notes it if the call of a tool began it.
pub(crate) fn seal(
    host: &Host<'_>,
    server: &str,
    method: &str,
    name: &str,
    result: &mut RawObject,
    process: Option<u64>,
) {
    if !result.is("resultType", "task") {
        return;
    }
    if let Some(id) = result.text(ID).map(Cow::into_owned) {
        let id = TaskId { id, process };
        result.set(ID, &Value::from(sealed(host, server, &id)));
        // Something else may have the name of a tool.
        if method != "tools/call" {
            return;
        }
        note_begun(host, server, id, String::new(), name);
    }
}

/// Notes a task that the call of a tool began. `shown` is the ID by which hosts list it.
fn note_begun(host: &Host<'_>, server: &str, id: TaskId, shown: String, tool: &str) {
    let known = host.gateway.tool_for(host.caller, server, tool);
    let begun = BegunTask {
        server: server.to_owned(),
        id,
        shown,
        tool: tool.to_owned(),
        definition: known.map(|tool| tool.definition).unwrap_or_default(),
        since: Instant::now(),
    };
    host.gateway.begun_tasks().note(&host.caller.owner(), begun);
}

/// Returns the gateway's own ID of a task.
fn sealed(host: &Host<'_>, server: &str, id: &TaskId) -> String {
    let TaskId { id, process } = id.clone();
    let content = Content::Task { server: server.to_owned(), id, process };
    host.gateway.seal().seal(content, &purpose(&host.principal), KEPT)
}

/// Returns how a task has ended by its state; `None` while it goes on.
fn end_of(state: &RawObject) -> Option<Outcome> {
    match state.text("status")?.as_ref() {
        "completed" => {
            let is_error = state.value("result")["isError"] == true;
            Some(if is_error { Outcome::Error } else { Outcome::Done })
        }
        "failed" => Some(Outcome::Failed),
        "cancelled" => Some(Outcome::Cancelled),
        _ => None,
    }
}

/// Notes that a task of the principal is seen to have ended, once: preconditions are judged by its call, which is audited.
async fn note_end(host: &Host<'_>, server: &str, id: &TaskId, outcome: Outcome) {
    let ended = host.gateway.begun_tasks().end(&host.caller.owner(), server, id);
    let Some(task) = ended else { return };
    if outcome != Outcome::Cancelled
        && let Some(model_name) = calling::model_name(server, &task.tool)
    {
        host.gateway.has_called(host.caller, &model_name, outcome == Outcome::Done);
    }
    let ended = EndedTask {
        server,
        tool: &task.tool,
        definition: &task.definition,
        duration: task.since.elapsed(),
        outcome,
    };
    host.gateway.audit().task_ended(host.caller, ended).await;
}

/// Sends a request about a task to the task's server, which is `only` where the face has one server.
///
/// # Errors
/// The host declares no tasks, the ID is none of this principal's, or the server failed.
pub(crate) async fn request(
    host: &Host<'_>,
    only: Option<&str>,
    method: &str,
    mut params: Map<String, Value>,
) -> Result<Answered, (String, Failure)> {
    if !is_modern(host.context) {
        return older::request(host, only, method, params).await;
    }
    if [older::LIST, older::RESULT].contains(&method) {
        return Err(refused(unknown(method)));
    }
    if !host.capabilities().supports_tasks() {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Err(refused(ErrorData::missing_required_client_capability(required)));
    }
    let Task { server, id, shown } = Task::of(host, only, &params).map_err(refused)?;
    params.insert(ID.to_owned(), Value::from(id.id.as_str()));
    let host = &at_process(host, &id);
    let result = host.request(&server, method, params).await;
    let mut result = result.map_err(|failure| (server.clone(), failure))?;
    if let Some(outcome) = end_of(&result) {
        note_end(host, &server, &id, outcome).await;
    }
    if result.get(ID).is_some() {
        result.set(ID, &Value::from(shown));
    }
    Ok(Answered { server, result })
}

/// Cuts the result of a call that ran as a task, wherever an answer about the task has it, as the call's own answer would be cut.
pub(crate) fn cut(
    answer: &mut RawObject,
    limit: usize,
    server: &str,
    owner: &Owner,
    results: &Results,
) {
    each_result(answer, |result| {
        gathered::rename_links(server, result);
        cutting::cut(result, limit, server, owner, results);
    });
}

/// Puts a text before the contents of a task's result that says that they are no instructions.
pub(crate) fn mark(answer: &mut RawObject, server: &str) {
    each_result(answer, |result| calling::mark(result, server));
}

/// Looks at the result of a call that ran as a task, wherever an answer about the task has it, as the call's own answer is looked at.
pub(crate) async fn look_at(gateway: &Gateway, caller: &Caller, server: &str, answer: &RawObject) {
    if is_result(answer) {
        gateway.look_at(caller, server, "", answer).await;
    }
    if let Some(result) = result_in(answer) {
        gateway.look_at(caller, server, "", &result).await;
    }
}

/// Returns whether an answer is the result of a call.
fn is_result(answer: &RawObject) -> bool {
    ["content", "structuredContent"].iter().any(|part| answer.get(part).is_some())
}

/// Returns the result of a call that is a part of a task's state.
fn result_in(answer: &RawObject) -> Option<RawObject> {
    let result = RawObject::parse(answer.get("result")?.to_owned()).ok()?;
    is_result(&result).then_some(result)
}

/// Changes the results of calls of tools in an answer about a task: the answer itself, or a part of the task's state in 2026-07-28.
fn each_result(answer: &mut RawObject, change: impl Fn(&mut RawObject)) {
    if is_result(answer) {
        change(answer);
    }
    if let Some(mut result) = result_in(answer) {
        change(&mut result);
        answer.set_json("result", result.into_text());
    }
}

/// Task that a request names.
struct Task {
    server: String,
    id: TaskId,
    /// ID that the host has for it.
    shown: String,
}

impl Task {
    /// Returns the task of this principal that a request names, if its server is behind the face.
    ///
    /// # Errors
    /// There is none.
    fn of(
        host: &Host<'_>,
        only: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<Self, ErrorData> {
        let shown = params.get(ID).and_then(Value::as_str).unwrap_or_default().to_owned();
        let opened = host.gateway.seal().open(&shown, &purpose(&host.principal));
        let is_open = |server: &str| {
            only.is_none_or(|only| only == server) && host.gateway.sees(&host.caller.tenant, server)
        };
        match opened {
            Some(Content::Task { server, id, process }) if is_open(&server) => {
                Ok(Self { server, id: TaskId { id, process }, shown })
            }
            _ => {
                let problem = "there is no such task of this caller";
                Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None))
            }
        }
    }
}

fn of_id(id: &str) -> Map<String, Value> {
    Map::from_iter([(ID.to_owned(), Value::from(id))])
}

/// Returns the host as one whose requests go to the process of a task.
fn at_process<'h>(host: &Host<'h>, id: &TaskId) -> Host<'h> {
    Host { process: id.process, ..host.clone() }
}

fn refused(error: ErrorData) -> (String, Failure) {
    ("the gateway".to_owned(), Failure::Refused(error))
}

fn unknown(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)
}

/// Returns true if a server that is there runs calls as tasks.
pub(crate) fn are_offered(gateway: &Gateway, server: &str) -> bool {
    let listing = gateway.fleet().listing(server);
    listing.is_some_and(|listing| {
        listing.is_modern() && listing.capabilities["extensions"].get(TASKS_EXTENSION_ID).is_some()
    })
}

fn purpose(principal: &str) -> Purpose<'_> {
    Purpose { principal, server: "", method: "tasks", name: "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_task_is_marked_wherever_it_is() {
        let marked = |answer: &'static str| {
            let mut answer = RawObject::parse(answer).expect("an object");
            mark(&mut answer, "sea");
            serde_json::from_str::<Value>(&answer.into_text()).expect("JSON")
        };
        let says_so = |content: &Value| {
            let text = content[0]["text"].as_str().unwrap_or_default();
            text.contains("from sea, a server that is not trusted")
        };
        let older = marked(r#"{"content":[{"type":"text","text":"a"}],"result":1}"#);
        assert!(says_so(&older["content"]) && older["content"][1]["text"] == "a", "{older}");
        assert_eq!(older["result"], 1);
        let state = r#"{"taskId":"1","status":"completed","result":{"content":[{"type":"text","text":"a"}]}}"#;
        let modern = marked(state);
        let content = &modern["result"]["content"];
        assert!(says_so(content) && content[1]["text"] == "a", "{modern}");
        assert_eq!(modern["taskId"], "1");
        let running = marked(r#"{"taskId":"1","status":"working","result":{}}"#);
        assert_eq!(running["result"], serde_json::json!({}));
    }

    #[test]
    fn the_result_of_a_task_is_cut_wherever_it_is_and_its_rest_is_kept() {
        let whole = "line\n".repeat(1_000);
        let result = serde_json::json!({"content": [{"type": "text", "text": whole}]});
        let state = serde_json::json!({"taskId": "1", "status": "completed", "result": result});
        let owner = crate::caller::Caller::default().owner();
        for (answer, path) in [(&result, ""), (&state, "/result")] {
            let results = Results::default();
            let mut answer = RawObject::parse(answer.to_string()).expect("an object");
            cut(&mut answer, 100, "sea", &owner, &results);
            let answer: Value = serde_json::from_str(&answer.into_text()).expect("JSON");
            let cut = answer.pointer(path).expect("a result");
            let shown = cut["content"][0]["text"].as_str().expect("a text");
            assert!(shown.len() < 300, "{shown}");
            let handle = shown.split("handle=").nth(1).and_then(|rest| rest.split(' ').next());
            let kept = results.find(&owner, handle.expect("a handle")).expect("a result");
            assert_eq!(*kept.text, *whole);
        }
        // What is no result of a tool is as it was.
        let other = r#"{"taskId":"1","result":{"contents":[ {"text":"\u0061"}]}}"#;
        let mut answer = RawObject::parse(other).expect("an object");
        cut(&mut answer, 0, "sea", &owner, &Results::default());
        assert_eq!(answer.into_text(), other);
    }

    #[test]
    fn a_state_says_how_a_task_has_ended() {
        let end = |state: &'static str| end_of(&RawObject::parse(state).expect("an object"));
        assert_eq!(end(r#"{"status":"working"}"#), None);
        assert_eq!(end("{}"), None);
        assert_eq!(end(r#"{"status":"completed"}"#), Some(Outcome::Done));
        let error = r#"{"status":"completed","result":{"content":[],"isError":true}}"#;
        assert_eq!(end(error), Some(Outcome::Error));
        assert_eq!(end(r#"{"status":"failed"}"#), Some(Outcome::Failed));
        assert_eq!(end(r#"{"status":"cancelled"}"#), Some(Outcome::Cancelled));
    }
}
