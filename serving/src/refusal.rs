//! Answers to callers that are refused before any service has seen the call, over gRPC, gRPC-Web and plain HTTP.

use std::time::Duration;

use tonic::codegen::http::header::{self, CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::{HeaderMap, Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

/// Delay after which a refused call is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Builds the refusal of a request of this content type for lack of room, with `why` as its message. Copies the CORS
/// headers of `meant`, the headers of the intended answer.
pub(crate) fn refused<B: Default>(
    content: Option<HeaderValue>,
    meant: &HeaderMap,
    why: &'static str,
) -> Response<B> {
    let mut response = match content.filter(is_grpc) {
        Some(content) => told(&overloaded(why), content),
        None => {
            let mut response = Response::new(B::default());
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    };
    // Without these headers a web page may not read the message.
    let of_pages = meant.iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
    response.headers_mut().extend(of_pages.map(|(name, value)| (name.clone(), value.clone())));
    response
}

/// Builds the answer to a request of this content type whose deadline has passed.
pub(crate) fn late<B: Default>(content: Option<HeaderValue>) -> Response<B> {
    if let Some(content) = content.filter(is_grpc) {
        let mut details = ErrorDetails::new();
        details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
        let why = "the deadline passed before the call's turn came";
        return told(&Status::with_error_details(Code::DeadlineExceeded, why, details), content);
    }
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    response
}

/// Returns true for gRPC and gRPC-Web.
fn is_grpc(content: &HeaderValue) -> bool {
    content.as_bytes().starts_with(b"application/grpc")
}

/// Puts a status into the headers, which gRPC-Web understands too.
fn told<B: Default>(status: &Status, content: HeaderValue) -> Response<B> {
    let mut response = status.clone().into_http();
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

/// Builds the gRPC status of a refusal.
pub(crate) fn overloaded(why: &'static str) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(ErrorReason::Overloaded.name(), ERROR_DOMAIN, []);
    details.set_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::ResourceExhausted, why, details)
}
