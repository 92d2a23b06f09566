//! Advice for the person who reads an error of the service.

use tonic::Code;
use toolgate_proto::v1::ErrorReason as Reason;

use crate::error::CallError;

/// Returns one sentence of advice, or `None` if the service's message already says enough.
pub(crate) fn advice(error: &CallError) -> Option<String> {
    let Some(reason) = error.reason else {
        return without_reason(error.code).map(Into::into);
    };
    let text = match reason {
        Reason::TenantNotFound => {
            "Register an MCP server for this tenant first, or name another tenant."
        }
        Reason::ServerNotFound => "List the tenant's MCP servers to see their names.",
        Reason::EtagMismatch => {
            "Somebody changed it meanwhile: read it again, then repeat the change."
        }
        Reason::RequestIdReused => "Give every new request a request_id of its own.",
        Reason::ToolsRejected => "Mend the tools named above, or register without all_or_nothing.",
        Reason::HandleInvalid => "Route again and use the handle that it answers with.",
        Reason::PageTokenInvalid => "Begin the listing again without a page token.",
        Reason::FingerprintMismatch => "Describe the worker, and use one with the wanted model.",
        Reason::TenantLimited => return Some(later(error, "The tenant uses as much as it may")),
        Reason::Overloaded => return Some(later(error, "The service is at capacity")),
        Reason::EncoderUnavailable | Reason::StoreUnavailable | Reason::Draining => {
            return Some(later(error, "The service cannot do this now"));
        }
        Reason::DeadlineExceeded => "Allow the call more time.",
        Reason::NotImplemented => "This version of the service does not serve it yet.",
        Reason::RevisionNotReached => "Try again, or ask for an older revision.",
        Reason::Unauthenticated => "Send a valid credential.",
        Reason::PermissionDenied => "Ask for access, or use another tenant.",
        Reason::LimitExceeded => return limit(error),
        Reason::Internal => {
            "This is a defect of the service: report it with the request named above."
        }
        Reason::InvalidField | Reason::MalformedCatalog | Reason::Unspecified => return None,
    };
    Some(text.into())
}

fn without_reason(code: Code) -> Option<&'static str> {
    match code {
        Code::Unimplemented => {
            Some("Whatever answers there is no Toolgate server, or one of another version.")
        }
        Code::OutOfRange | Code::ResourceExhausted => {
            Some("A message may have been larger than max_answer_bytes allows.")
        }
        _ => None,
    }
}

fn later(error: &CallError, what: &str) -> String {
    match error.retry_delay {
        Some(delay) => format!("{what}: try again in {delay:?}."),
        None => format!("{what}: try again later."),
    }
}

fn limit(error: &CallError) -> Option<String> {
    let get = |name: &str| error.metadata.get(name);
    let limit = get("limit")?;
    let maximum = get("maximum")?;
    let actual = get("actual").map_or_else(String::new, |actual| format!(", this has {actual}"));
    Some(format!("The limit {limit} is {maximum}{actual}."))
}
