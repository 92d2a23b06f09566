//! Tasks of servers: calls that a host looks after by an ID. The gateway's IDs say whose a task is, and are good for one
//! principal. Here are those of the extension of 2026-07-28.

pub(crate) mod begun;
pub(crate) mod older;

use std::borrow::Cow;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, ErrorCode, ErrorData, TASKS_EXTENSION_ID};
use serde_json::{Map, Value};

use crate::gateway::Gateway;
use crate::host::{Failure, Host, is_modern};
use crate::raw::RawObject;
use crate::sealed::{Content, Purpose};

/// Methods about tasks, of both revisions that have some.
pub(crate) const METHODS: [&str; 5] = [CANCEL, GET, older::LIST, older::RESULT, "tasks/update"];

const GET: &str = "tasks/get";
const CANCEL: &str = "tasks/cancel";

/// Field of a task's ID in parameters and results.
const ID: &str = "taskId";

/// Time for which an ID is good. Servers keep tasks for less.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Result of a request about a task.
pub(crate) struct Answered {
    /// Server of the task; empty if it is of several.
    pub(crate) server: String,
    pub(crate) result: RawObject,
}

/// Sets the gateway's own ID in a result that is a task.
pub(crate) fn seal(gateway: &Gateway, principal: &str, server: &str, result: &mut RawObject) {
    if !result.is("resultType", "task") {
        return;
    }
    if let Some(id) = result.text(ID).map(Cow::into_owned) {
        let content = Content::Task { server: server.to_owned(), id };
        let sealed = gateway.seal().seal(content, &purpose(principal), KEPT);
        result.set(ID, &Value::from(sealed));
    }
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
    params.insert(ID.to_owned(), Value::from(id));
    let result = host.request(&server, method, params).await;
    let mut result = result.map_err(|failure| (server.clone(), failure))?;
    if result.get(ID).is_some() {
        result.set(ID, &Value::from(shown));
    }
    Ok(Answered { server, result })
}

/// Task that a request names.
struct Task {
    server: String,
    /// ID that the server gave it.
    id: String,
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
            Some(Content::Task { server, id }) if is_open(&server) => {
                Ok(Self { server, id, shown })
            }
            _ => {
                let problem = "there is no such task of this caller";
                Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None))
            }
        }
    }
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
