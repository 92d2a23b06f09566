//! Tasks of 2025-11-25: a host of that revision has a call run as a task, and looks after it by its ID. A task lives on the
//! connection that all share, where its server asks nobody, so that whoever looks after it reaches the same process. One of a
//! server with a process for each principal lives in that of its principal.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use toolgate_upstream::RequestError;

use super::begun::TaskId;
use super::starting::{self, Begun, Started, StartedTask};
use super::{
    Answered, CANCEL, GET, ID, Task, at_process, end_of, note_begun, note_end, of_id, refused,
    sealed, unknown,
};
use crate::audit::Outcome;
use crate::calling;
use crate::gateway::Gateway;
use crate::host::{Failure, Host, is_modern};
use crate::raw::{RawObject, list_of};

pub(crate) const LIST: &str = "tasks/list";
pub(crate) const RESULT: &str = "tasks/result";

/// Field of a call that is to run as a task, and of its answer.
const TASK: &str = "task";

/// Field of a result's metadata that names its task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Pauses between questions whether a task has ended: where its server says none, and the bounds of what it says.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Tasks whose states are asked for at a time.
const ASKED_AT_ONCE: usize = 4;

/// Time for a server to tell the ID of a task whose host has left. The call keeps a turn at the server meanwhile.
const ID_AWAITED: Duration = Duration::from_secs(30);

/// Way of a call that becomes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The host looks after the task.
    Begun,
    /// The tool runs in no other way, and the host asked for no task: the gateway looks after it.
    Awaited,
}

/// Returns true if a server that is there runs calls as such tasks.
pub(crate) fn are_offered(gateway: &Gateway, server: &str) -> bool {
    let listing = gateway.fleet().listing(server);
    listing.is_some_and(|listing| {
        listing.identity.protocol == ProtocolVersion::V_2025_11_25.as_str()
            && listing.capabilities["tasks"]["requests"]["tools"]["call"].is_object()
    })
}

/// Returns how a request becomes a task, and sets in its parameters what says so; `None` if it becomes none. The wish of a host is
/// left out where its server has no tasks, as the revision wants it.
pub(crate) fn way(
    host: &Host<'_>,
    server: &str,
    method: &str,
    params: &mut Map<String, Value>,
) -> Option<Way> {
    if method != "tools/call" {
        return None;
    }
    let wished = params.remove(TASK).filter(|_| !is_modern(host.context));
    if !are_offered(host.gateway, server) {
        return None;
    }
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let needs_task = host.gateway.tool(server, name).is_some_and(|tool| tool.needs_task);
    let way = if wished.is_some() { Way::Begun } else { Way::Awaited };
    if wished.is_none() && !needs_task {
        return None;
    }
    params.insert(TASK.to_owned(), wished.unwrap_or_else(|| json!({})));
    Some(way)
}

/// Sends a call that becomes a task.
pub(crate) async fn call(
    host: &Host<'_>,
    server: &str,
    params: Map<String, Value>,
    way: Way,
) -> Result<RawObject, Failure> {
    let tool = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let started = starting::start(host, server, params, ID_AWAITED, task_in).await?;
    let Started { mut result, task, process } = started;
    let Some(StartedTask { id, state, mut unheeded }) = task else { return Ok(result) };
    let id = TaskId { id, process };
    match way {
        Way::Begun => {
            let shown = sealed(host, server, &id);
            result.set_json(TASK, with_id(state, &shown).into_text());
            note_begun(host, server, id, shown, &tool);
            unheeded.is_heeded();
            Ok(result)
        }
        Way::Awaited => {
            let late =
                "the tool did not end in time: its task was cancelled, and may have had effects";
            let host = &at_process(host, &id);
            until_ended(host, server, &id.id, late).await?;
            unheeded.is_heeded();
            let mut result = host.send(server, RESULT, of_id(&id.id)).await?;
            if let Value::Object(mut meta) = result.value("_meta") {
                meta.remove(RELATED);
                result.set("_meta", &Value::Object(meta));
            }
            Ok(result)
        }
    }
}

/// Returns true if the answer to a call stands for a task.
pub(crate) fn is_begun(result: &RawObject) -> bool {
    begun_in(result).is_some()
}

/// Returns the task that an answer stands for.
fn task_in(result: &RawObject) -> Option<Begun> {
    let state = begun_in(result)?;
    let id = state.text(ID).map(Cow::into_owned)?;
    Some(Begun { id, state })
}

fn begun_in(result: &RawObject) -> Option<RawObject> {
    if result.get("content").is_some() {
        return None;
    }
    RawObject::parse(result.get(TASK)?.to_owned()).ok()
}

/// Answers a request about tasks of a host of a revision before 2026-07-28.
///
/// # Errors
/// The ID is none of this principal's, or the server failed.
pub(super) async fn request(
    host: &Host<'_>,
    only: Option<&str>,
    method: &str,
    mut params: Map<String, Value>,
) -> Result<Answered, (String, Failure)> {
    match method {
        LIST => return Ok(Answered { server: String::new(), result: list(host, only).await }),
        GET | CANCEL | RESULT => {}
        _ => return Err(refused(unknown(method))),
    }
    let Task { server, id, shown } = Task::of(host, only, &params).map_err(refused)?;
    let host = &at_process(host, &id);
    let failed = |failure| (server.clone(), failure);
    let mut outcome = None;
    if method == RESULT {
        let late = "the task still runs: ask for its result again later";
        outcome = Some(until_ended(host, &server, &id.id, late).await.map_err(failed)?);
    }
    params.insert(ID.to_owned(), Value::from(id.id.as_str()));
    let answer = host.send(&server, method, params).await;
    if let (Err(_), Some(ended @ (Outcome::Failed | Outcome::Cancelled))) = (&answer, outcome) {
        // Such a task may have no result.
        note_end(host, &server, &id, ended).await;
    }
    let mut result = answer.map_err(failed)?;
    outcome = match outcome {
        None => end_of(&result),
        Some(Outcome::Done) => Some(calling::outcome_of(&result)),
        failed => failed,
    };
    if let Some(outcome) = outcome {
        note_end(host, &server, &id, outcome).await;
    }
    if method != RESULT {
        result = with_id(result, &shown);
    } else if let Value::Object(mut meta) = result.value("_meta")
        && let Some(Value::Object(related)) = meta.get_mut(RELATED)
    {
        related.insert(ID.to_owned(), Value::from(shown));
        result.set("_meta", &Value::Object(meta));
    }
    Ok(Answered { server, result })
}

/// Returns the states of the tasks that the principal began and whose servers still know them.
async fn list(host: &Host<'_>, only: Option<&str>) -> RawObject {
    let owner = host.caller.owner();
    let mut begun = host.gateway.begun_tasks().of(&owner);
    begun.retain(|task| {
        only.is_none_or(|only| only == task.server)
            && host.gateway.sees(&host.caller.tenant, &task.server)
    });
    let owner = &owner;
    let states = begun.into_iter().map(|task| async move {
        let host = at_process(host, &task.id);
        match host.send(&task.server, GET, of_id(&task.id.id)).await {
            Ok(state) => {
                if let Some(outcome) = end_of(&state) {
                    note_end(&host, &task.server, &task.id, outcome).await;
                }
                Some(with_id(state, &task.shown).into_text())
            }
            // So a server says that it knows no such task. Other errors may pass.
            Err(Failure::Server(RequestError::Server { code, .. }))
                if code == i64::from(ErrorCode::INVALID_PARAMS.0) =>
            {
                host.gateway.begun_tasks().forget(owner, &task);
                None
            }
            Err(_) => None,
        }
    });
    let states: Vec<Option<String>> = stream::iter(states).buffered(ASKED_AT_ONCE).collect().await;
    let states: Vec<String> = states.into_iter().flatten().collect();
    let mut result = RawObject::default();
    result.set_json("tasks", list_of(&states));
    result
}

/// Waits until a task has ended, and returns how; `late` says that it did not in the time of a call. A server's own answer would keep a turn for as
/// long, and the time of a call is shorter.
async fn until_ended(
    host: &Host<'_>,
    server: &str,
    id: &str,
    late: &'static str,
) -> Result<Outcome, Failure> {
    let deadline = Instant::now() + host.gateway.call_time_max();
    loop {
        let state = host.send(server, GET, of_id(id)).await?;
        if let Some(outcome) = end_of(&state) {
            return Ok(outcome);
        }
        if state.is("status", "input_required") {
            return Err(failure(
                "the task asks its host, which a task can't do behind this gateway",
            ));
        }
        let pause = pause_of(&state);
        if Instant::now() + pause > deadline {
            return Err(failure(late));
        }
        sleep(pause).await;
    }
}

/// Returns the time until a task's state is asked for again.
fn pause_of(state: &RawObject) -> Duration {
    let wished = state.value("pollInterval").as_u64().map(Duration::from_millis);
    wished.map_or(PAUSE, |wished| wished.clamp(PAUSE_MIN, PAUSE_MAX))
}

fn failure(problem: &'static str) -> Failure {
    Failure::Refused(ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None))
}

fn with_id(mut task: RawObject, shown: &str) -> RawObject {
    if task.get(ID).is_some() {
        task.set(ID, &Value::from(shown));
    }
    task
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> RawObject {
        RawObject::parse(text.to_owned()).expect("an object")
    }

    #[test]
    fn a_result_with_content_is_no_task() {
        assert!(is_begun(&object(r#"{"task":{"taskId":"1"}}"#)));
        assert!(!is_begun(&object(r#"{"content":[],"task":{"taskId":"1"}}"#)));
        assert!(!is_begun(&object(r#"{"task":1}"#)));
    }

    #[test]
    fn a_server_says_how_often_it_is_asked_within_bounds() {
        let pause = |state: &str| pause_of(&object(state)).as_millis();
        assert_eq!(pause("{}"), 1_000);
        assert_eq!(pause(r#"{"pollInterval":0}"#), 50);
        assert_eq!(pause(r#"{"pollInterval":700}"#), 700);
        assert_eq!(pause(r#"{"pollInterval":99999999}"#), 5_000);
    }
}
