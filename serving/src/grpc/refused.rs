//! Answers to callers that are refused before any service has seen the call, over gRPC, gRPC-Web and plain HTTP.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tonic::body::Body as TonicBody;
use tonic::codegen::http::header::{self, CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::{HeaderMap, Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;
use tower::BoxError;

use crate::refusal::{BodyTooSlow, Refusal};

/// Delay after which a refused call is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Builds the answer to a refused request of this content type.
pub(crate) fn answer<B: Default>(refusal: Refusal, content: Option<HeaderValue>) -> Response<B> {
    let mut response = Response::new(B::default());
    if let Some(content) = content.filter(is_any_grpc) {
        *response.headers_mut() = trailers(refusal).clone();
        response.headers_mut().insert(CONTENT_TYPE, content);
    } else if refusal.is_overload() {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    } else {
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    }
    response
}

/// Builds the answer to a request of this content type in the place of one with the headers `meant`, and copies its CORS
/// headers. Without them a web page may not read the message.
pub(crate) fn answer_in_place_of<B: Default>(
    refusal: Refusal,
    meant: &HeaderMap,
    content: Option<HeaderValue>,
) -> Response<B> {
    let mut response = answer(refusal, content);
    let of_pages = meant.iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
    response.headers_mut().extend(of_pages.map(|(name, value)| (name.clone(), value.clone())));
    response
}

/// Returns the refusal as gRPC trailers. Each is encoded once, because under overload most answers are refusals.
pub(crate) fn trailers(refusal: Refusal) -> &'static HeaderMap {
    static REQUESTS_FULL: OnceLock<HeaderMap> = OnceLock::new();
    static REQUESTS_WAITED: OnceLock<HeaderMap> = OnceLock::new();
    static TENANT_FULL: OnceLock<HeaderMap> = OnceLock::new();
    static LATE: OnceLock<HeaderMap> = OnceLock::new();
    static ANSWERS_UNREAD: OnceLock<HeaderMap> = OnceLock::new();
    let encoded = match refusal {
        Refusal::RequestsFull => &REQUESTS_FULL,
        Refusal::RequestsWaited => &REQUESTS_WAITED,
        Refusal::TenantFull => &TENANT_FULL,
        Refusal::Late => &LATE,
        Refusal::AnswersUnread => &ANSWERS_UNREAD,
    };
    encoded.get_or_init(|| {
        let mut headers = HeaderMap::new();
        status_of(refusal).add_header(&mut headers).expect("a status of ours fits headers");
        headers
    })
}

fn status_of(refusal: Refusal) -> Status {
    let mut details = ErrorDetails::new();
    if refusal.is_overload() {
        details.set_error_info(ErrorReason::Overloaded.name(), ERROR_DOMAIN, []);
        details.set_retry_info(Some(RETRY_AFTER));
        return Status::with_error_details(Code::ResourceExhausted, refusal.message(), details);
    }
    details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
    Status::with_error_details(Code::DeadlineExceeded, refusal.message(), details)
}

/// Wraps a body for gRPC services, which read its errors as statuses.
pub(crate) fn body_of<B>(body: B) -> TonicBody
where
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    TonicBody::new(body.map_err(body_error))
}

fn body_error(error: BoxError) -> Status {
    if !error.is::<BodyTooSlow>() {
        return Status::from_error(error);
    }
    let mut details = ErrorDetails::new();
    details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
    Status::with_error_details(Code::DeadlineExceeded, BodyTooSlow.to_string(), details)
}

/// Returns true for native gRPC; gRPC-Web does not count.
pub(crate) fn is_native(content: &HeaderValue) -> bool {
    let kind = content.as_bytes().strip_prefix(b"application/grpc");
    kind.is_some_and(|rest| !rest.starts_with(b"-web"))
}

/// Returns true for gRPC and gRPC-Web.
fn is_any_grpc(content: &HeaderValue) -> bool {
    content.as_bytes().starts_with(b"application/grpc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_asks_for_a_retry_and_a_deadline_does_not() {
        for (refusal, code, retry, http) in [
            (Refusal::RequestsFull, Code::ResourceExhausted, true, 429),
            (Refusal::AnswersUnread, Code::ResourceExhausted, true, 429),
            (Refusal::Late, Code::DeadlineExceeded, false, 504),
        ] {
            let content = HeaderValue::from_static("application/grpc-web+proto");
            let grpc: Response<()> = answer(refusal, Some(content.clone()));
            let status = Status::from_header_map(grpc.headers()).expect("a status");
            assert_eq!(status.code(), code, "{refusal:?}");
            assert_eq!(status.message(), refusal.message());
            assert_eq!(status.get_details_retry_info().is_some(), retry, "{refusal:?}");
            assert_eq!(grpc.headers().get(CONTENT_TYPE), Some(&content));
            let plain: Response<()> = answer(refusal, None);
            assert_eq!(plain.status().as_u16(), http, "{refusal:?}");
            assert_eq!(plain.headers().contains_key(header::RETRY_AFTER), retry, "{refusal:?}");
        }
    }

    #[test]
    fn errors_of_bodies_keep_their_status() {
        let slow = body_error(BodyTooSlow.into());
        assert_eq!(slow.code(), Code::DeadlineExceeded);
        let reason = slow.get_details_error_info().expect("details").reason;
        assert_eq!(reason, "DEADLINE_EXCEEDED");
        assert_eq!(body_error(Status::aborted("broken").into()).code(), Code::Aborted);
    }
}
