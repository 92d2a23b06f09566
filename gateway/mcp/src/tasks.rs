//! Tasks of servers (the extension of 2026-07-28): calls that a host looks after by an ID. The gateway's IDs say whose a task
//! is, and are good for one principal.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, ErrorCode, ErrorData, TASKS_EXTENSION_ID};
use serde_json::{Map, Value};

use crate::gateway::Gateway;
use crate::host::{Failure, Host};
use crate::raw::RawObject;
use crate::sealed::{Content, Purpose};

/// Methods about a task, by its ID.
pub(crate) const METHODS: [&str; 3] = ["tasks/cancel", "tasks/get", "tasks/update"];

/// Field of a task's ID in parameters and results.
const ID: &str = "taskId";

/// Time for which an ID is good. Servers keep tasks for less.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

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
) -> Result<RawObject, (String, Failure)> {
    let refused = |error| ("the gateway".to_owned(), Failure::Refused(error));
    if !host.capabilities().supports_tasks() {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Err(refused(ErrorData::missing_required_client_capability(required)));
    }
    let shown = params.get(ID).and_then(Value::as_str).unwrap_or_default().to_owned();
    let opened = host.gateway.seal().open(&shown, &purpose(&host.principal));
    let is_open = |server: &str| {
        only.is_none_or(|only| only == server) && host.gateway.sees(&host.caller.tenant, server)
    };
    let (server, id) = match opened {
        Some(Content::Task { server, id }) if is_open(&server) => (server, id),
        _ => {
            let problem = "there is no such task of this caller";
            return Err(refused(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None)));
        }
    };
    params.insert(ID.to_owned(), Value::from(id));
    let result = host.request(&server, method, params).await;
    let mut result = result.map_err(|failure| (server, failure))?;
    if result.get(ID).is_some() {
        result.set(ID, &Value::from(shown));
    }
    Ok(result)
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
