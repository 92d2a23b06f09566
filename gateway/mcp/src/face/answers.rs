//! Results and errors as each revision of MCP wants them.

use axum::body::Bytes;
use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use toolgate_upstream::{RequestError, ServerState};

use crate::host::{Failure, LOST};
use crate::lists::AwaitedList;

/// Time for which a host may keep a list, in milliseconds.
const LIST_TTL_MS: u64 = 300_000;

/// Sets what a revision of MCP wants in results, and takes out what an older one does not know.
pub(super) fn finish(result: &mut Value, method: &str, is_modern: bool, scope: &str) {
    let Some(result) = result.as_object_mut() else { return };
    if is_modern {
        result.entry("resultType").or_insert_with(|| Value::from("complete"));
        if method.ends_with("/list") || method == "resources/read" {
            result.entry("ttlMs").or_insert_with(|| Value::from(LIST_TTL_MS));
            let told = result.entry("cacheScope").or_insert_with(|| Value::from(scope));
            // What a server gives everybody is not for everybody here.
            if scope == "private" {
                *told = Value::from(scope);
            }
        }
    } else {
        for field in ["resultType", "ttlMs", "cacheScope"] {
            result.remove(field);
        }
    }
}

/// Returns a result with a list of tools: its text as it is where the response of the request takes it.
pub(super) fn with_tools(
    context: &RequestContext<RoleServer>,
    list: &Bytes,
) -> Result<Value, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let awaited = parts.and_then(|parts| parts.extensions.get::<AwaitedList>());
    let mark = awaited.and_then(|awaited| awaited.take(list.clone()));
    let tools = match mark {
        Some(mark) => mark,
        None => serde_json::from_slice(list).map_err(|error| {
            let problem = format!("the list can't be read: {error}");
            ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None)
        })?,
    };
    Ok(json!({"tools": tools}))
}

pub(super) fn protocol_error(server: &str, failure: Failure) -> ErrorData {
    let error = match failure {
        Failure::Server(error) => error,
        Failure::Refused(error) => return error,
        Failure::Lost => return ErrorData::new(ErrorCode::INVALID_PARAMS, LOST, None),
        Failure::NotConnected(told) => {
            return ErrorData::new(ErrorCode::INVALID_REQUEST, told, None);
        }
    };
    match error {
        RequestError::Server { code, message, data } => {
            let code = i32::try_from(code).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
            ErrorData::new(code, message, data)
        }
        RequestError::Unavailable { state: ServerState::NeedsLogin, .. } => {
            ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("{server} asks for a login"), None)
        }
        error @ RequestError::Unavailable { may_have_run: true, .. } => {
            let problem = format!("{server}: {error}. The request may have had effects.");
            ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None)
        }
        other => ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("{server}: {other}"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_fields_of_their_revision() {
        let mut result = json!({"tools": []});
        finish(&mut result, "tools/list", true, "public");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["ttlMs"], LIST_TTL_MS);
        finish(&mut result, "tools/list", false, "public");
        assert_eq!(result, json!({"tools": []}));
        let mut asks = json!({"resultType": "input_required"});
        finish(&mut asks, "tools/call", true, "public");
        assert_eq!(asks, json!({"resultType": "input_required"}));
        let mut read = json!({"contents": [], "cacheScope": "public"});
        finish(&mut read, "resources/read", true, "private");
        assert_eq!(read["cacheScope"], "private");
    }
}
