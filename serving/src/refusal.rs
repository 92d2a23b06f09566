//! Answers to callers that are refused before any service has seen the call, over gRPC, gRPC-Web and plain HTTP.

use std::sync::OnceLock;
use std::time::Duration;

use tonic::codegen::http::header::{self, CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::{HeaderMap, Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

/// Delay after which a refused call is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Refusal for lack of room. Its headers are encoded once, because under overload most answers are refusals.
#[derive(Debug)]
pub(crate) struct Overloaded {
    why: &'static str,
    headers: OnceLock<HeaderMap>,
}

impl Overloaded {
    /// Creates the refusal with this message.
    pub(crate) const fn new(why: &'static str) -> Self {
        Self { why, headers: OnceLock::new() }
    }

    /// Builds the answer to a request of this content type.
    pub(crate) fn answer<B: Default>(&self, content: Option<HeaderValue>) -> Response<B> {
        let mut response = Response::new(B::default());
        if let Some(content) = content.filter(is_grpc) {
            *response.headers_mut() = self.trailers().clone();
            response.headers_mut().insert(CONTENT_TYPE, content);
        } else {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// Builds the answer to a request of this content type in the place of one with the headers `meant`, and copies
    /// its CORS headers. Without them a web page may not read the message.
    pub(crate) fn in_place_of<B: Default>(
        &self,
        meant: &HeaderMap,
        content: Option<HeaderValue>,
    ) -> Response<B> {
        let mut response = self.answer(content);
        let of_pages =
            meant.iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
        response.headers_mut().extend(of_pages.map(|(name, value)| (name.clone(), value.clone())));
        response
    }

    /// Returns the refusal as gRPC trailers.
    pub(crate) fn trailers(&self) -> &HeaderMap {
        self.headers.get_or_init(|| {
            let mut details = ErrorDetails::new();
            details.set_error_info(ErrorReason::Overloaded.name(), ERROR_DOMAIN, []);
            details.set_retry_info(Some(RETRY_AFTER));
            let status = Status::with_error_details(Code::ResourceExhausted, self.why, details);
            let mut headers = HeaderMap::new();
            status.add_header(&mut headers).expect("a status of ours fits headers");
            headers
        })
    }
}

/// Builds the answer to a request of this content type whose deadline has passed.
pub(crate) fn late<B: Default>(content: Option<HeaderValue>) -> Response<B> {
    if let Some(content) = content.filter(is_grpc) {
        let mut details = ErrorDetails::new();
        details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
        let why = "the deadline passed before the call's turn came";
        let status = Status::with_error_details(Code::DeadlineExceeded, why, details);
        let mut response = status.into_http();
        response.headers_mut().insert(CONTENT_TYPE, content);
        return response;
    }
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    response
}

/// Returns true for gRPC and gRPC-Web.
fn is_grpc(content: &HeaderValue) -> bool {
    content.as_bytes().starts_with(b"application/grpc")
}
