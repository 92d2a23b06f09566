//! Failed call in the Connect protocol: an HTTP status and a JSON object with the gRPC code, the message and the
//! details, which are readable under `debug`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message as _;
use serde_json::{Map, Value, json};
use tonic::body::Body;
use tonic::codegen::http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use tonic::codegen::http::{Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use super::response;
use crate::status;
use toolgate_app::pipeline::log_failure;
use toolgate_core::error::Error;

/// Failed call, with the HTTP status and an optional header. The HTTP status may be more specific than the code's own.
pub(super) struct Failure {
    status: Status,
    http: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let http = http_status(status.code());
        let wait = status.get_details_retry_info().and_then(|info| info.retry_delay);
        let wait = wait.map(|wait| (RETRY_AFTER, HeaderValue::from(whole_seconds(wait))));
        // RFC 9110, section 11.6.1: a 401 names the authentication scheme.
        let asks = status.code() == Code::Unauthenticated;
        let ask = asks.then(|| (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        let header = wait.or(ask);
        Self { status, http, header }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        log_failure(error);
        status::of(error).into()
    }
}

impl Failure {
    pub(super) fn foreign_page(origin: Option<&HeaderValue>) -> Self {
        let page = origin.map_or_else(String::new, |page| page.to_str().unwrap_or("?").to_owned());
        let message =
            format!("the page {page} may not call; server.cors_origins names those that may");
        reasoned(Code::PermissionDenied, ErrorReason::PermissionDenied, &message).into()
    }

    pub(super) fn no_such_method(path: &str) -> Self {
        let message =
            format!("there is no RPC at {path}; one is at /toolgate.v1.RouterService/Route");
        Self::with_http_status(
            Code::Unimplemented,
            ErrorReason::NotImplemented,
            StatusCode::NOT_FOUND,
            &message,
        )
    }

    pub(super) fn streams(path: &str) -> Self {
        let message = format!("{path} streams: call it over gRPC or gRPC-Web");
        let http = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::with_http_status(Code::Unimplemented, ErrorReason::NotImplemented, http, &message)
    }

    pub(super) fn not_posted() -> Self {
        let message = "RPCs are called by POST, such as POST /toolgate.v1.RouterService/Route";
        let http = StatusCode::METHOD_NOT_ALLOWED;
        let failure =
            Self::with_http_status(Code::Unimplemented, ErrorReason::NotImplemented, http, message);
        Self { header: Some((ALLOW, HeaderValue::from_static("POST"))), ..failure }
    }

    pub(super) fn unknown_content(problem: &str) -> Self {
        let header = HeaderName::from_static("accept-post");
        let types = HeaderValue::from_static("application/json, application/proto");
        let http = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let failure =
            Self::with_http_status(Code::Unimplemented, ErrorReason::NotImplemented, http, problem);
        Self { header: Some((header, types)), ..failure }
    }

    pub(super) fn bad_header(name: &str, problem: &str) -> Self {
        let message = format!("the header {name}: {problem}");
        reasoned(Code::InvalidArgument, ErrorReason::InvalidField, &message).into()
    }

    pub(super) fn unreadable(problem: &str) -> Self {
        let message = format!("the request is not the message in JSON: {problem}");
        reasoned(Code::InvalidArgument, ErrorReason::InvalidField, &message).into()
    }

    pub(super) fn too_large(maximum: usize) -> Self {
        let message = format!("the request's body is larger than {maximum} bytes");
        let limit =
            [("limit", "limits.max_message_size".to_owned()), ("maximum", maximum.to_string())];
        let limit = limit.map(|(key, value)| (key.to_owned(), value));
        let reason = ErrorReason::LimitExceeded;
        let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, limit);
        let status = Status::with_error_details(Code::InvalidArgument, message, details);
        Self { http: StatusCode::PAYLOAD_TOO_LARGE, ..status.into() }
    }

    pub(super) fn too_many_elements(maximum: usize) -> Self {
        let message = format!("the request has more than {maximum} objects, lists and values");
        reasoned(Code::InvalidArgument, ErrorReason::LimitExceeded, &message).into()
    }

    pub(super) fn internal() -> Self {
        reasoned(Code::Internal, ErrorReason::Internal, "internal error").into()
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let bytes = body(&self.status).to_string().into_bytes();
        let mut response = response(self.http, "application/json", bytes);
        response.headers_mut().extend(self.header);
        response
    }

    fn with_http_status(code: Code, reason: ErrorReason, http: StatusCode, message: &str) -> Self {
        Self { status: reasoned(code, reason, message), http, header: None }
    }
}

fn reasoned(code: Code, reason: ErrorReason, message: &str) -> Status {
    let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, []);
    Status::with_error_details(code, message, details)
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Returns the HTTP status for a code, by the section "Error Codes" of the Connect protocol.
fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "canceled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

fn body(status: &Status) -> Value {
    let mut body = Map::new();
    body.insert("code".into(), code_name(status.code()).into());
    body.insert("message".into(), status.message().into());
    let packed = tonic_types::pb::Status::decode(status.details()).unwrap_or_default();
    let readable = status.get_error_details();
    let details: Vec<Value> = packed.details.iter().map(|any| detail(any, &readable)).collect();
    if !details.is_empty() {
        body.insert("details".into(), details.into());
    }
    Value::Object(body)
}

fn detail(any: &prost_types::Any, readable: &ErrorDetails) -> Value {
    let name = any.type_url.rsplit('/').next().unwrap_or_default();
    let mut detail = json!({ "type": name, "value": STANDARD_NO_PAD.encode(&any.value) });
    if let (Some(debug), Some(fields)) = (debug(name, readable), detail.as_object_mut()) {
        fields.insert("debug".into(), debug);
    }
    detail
}

fn debug(name: &str, details: &ErrorDetails) -> Option<Value> {
    match name {
        "google.rpc.ErrorInfo" => details.error_info().map(|info| {
            json!({ "reason": info.reason, "domain": info.domain, "metadata": info.metadata })
        }),
        "google.rpc.BadRequest" => details.bad_request().map(|request| {
            let violation = |v: &tonic_types::FieldViolation| {
                json!({ "field": v.field, "description": v.description })
            };
            let violations: Vec<_> = request.field_violations.iter().map(violation).collect();
            json!({ "fieldViolations": violations })
        }),
        "google.rpc.RetryInfo" => details.retry_info().and_then(|info| {
            let wait = info.retry_delay?.as_secs_f64();
            Some(json!({ "retryDelay": format!("{wait}s") }))
        }),
        _ => None,
    }
}
