//! Results and errors as each revision of MCP wants them.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use toolgate_upstream::{RequestError, ServerState};

use crate::host::{Failure, LOST};
use crate::raw::RawObject;

/// Time for which a host may keep a list, in milliseconds.
const LIST_TTL_MS: u64 = 300_000;

/// Sets what a revision of MCP wants in results, and takes out what an older one does not know.
pub(super) fn finish(result: &mut RawObject, method: &str, is_modern: bool, scope: &str) {
    let mut set_if_absent = |name: &str, value: Value| {
        if result.get(name).is_none() {
            result.set(name, &value);
        }
    };
    if is_modern {
        set_if_absent("resultType", Value::from("complete"));
        if method.ends_with("/list") || method == "resources/read" {
            set_if_absent("ttlMs", Value::from(LIST_TTL_MS));
            set_if_absent("cacheScope", Value::from(scope));
            // What a server gives everybody is not for everybody here.
            if scope == "private" && !result.is("cacheScope", scope) {
                result.set("cacheScope", &Value::from(scope));
            }
        }
    } else {
        for field in ["resultType", "ttlMs", "cacheScope"] {
            result.remove(field);
        }
    }
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
        let finished = |text: &'static str, method: &str, is_modern: bool, scope: &str| {
            let mut result = RawObject::parse(text).expect("an object");
            finish(&mut result, method, is_modern, scope);
            result.into_text()
        };
        let list = r#"{"tools":[]}"#;
        let modern = format!(
            r#"{{"tools":[],"resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"public"}}"#
        );
        assert_eq!(finished(list, "tools/list", true, "public"), modern);
        let told = r#"{"tools":[],"resultType":"complete","ttlMs":1}"#;
        assert_eq!(finished(told, "tools/list", false, "public"), list);
        let asks = r#"{ "resultType": "input_required" }"#;
        assert_eq!(finished(asks, "tools/call", true, "public"), asks, "nothing is to be changed");
        let read = finished(r#"{"cacheScope":"public"}"#, "resources/read", true, "private");
        assert!(read.starts_with(r#"{"cacheScope":"private","#), "{read}");
    }
}
