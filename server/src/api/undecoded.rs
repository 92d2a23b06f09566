//! Requests that the transport could not decode: it answers them by itself, before any of our code runs
//! and without an `ErrorInfo`. This layer gives those answers the code and the reason of a bad request.

use std::collections::HashMap;
use std::task::{Context, Poll};

use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;
use tower::{Layer, Service};

/// Adds what the transport's own answers lack.
#[derive(Clone, Copy)]
pub(super) struct ExplainUndecoded;

/// The service under [`ExplainUndecoded`].
#[derive(Clone)]
pub(super) struct Explained<S>(S);

impl<S> Layer<S> for ExplainUndecoded {
    type Service = Explained<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Explained(inner)
    }
}

impl<S, A, B> Service<Request<A>> for Explained<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Default,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(match explained(response.headers()) {
                Some(status) => status.into_http(),
                None => response,
            })
        })
    }
}

/// Our own errors carry details and pass; a success has no status among its headers.
fn explained(headers: &HeaderMap) -> Option<Status> {
    let status = Status::from_header_map(headers)?;
    if !status.details().is_empty() {
        return None;
    }
    let reason = match status.code() {
        // What tonic says when the bytes are not the message: not protobuf, not UTF-8, nested too deep.
        Code::Internal => ErrorReason::InvalidField,
        // What tonic says when the message is longer than the limit.
        Code::OutOfRange => ErrorReason::LimitExceeded,
        _ => return None,
    };
    let metadata = match reason {
        ErrorReason::LimitExceeded => {
            HashMap::from([("limit".to_owned(), "limits.max_message_size".to_owned())])
        }
        _ => HashMap::new(),
    };
    let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, metadata);
    let message = format!("the request can't be decoded: {}", status.message());
    Some(Status::with_error_details(Code::InvalidArgument, message, details))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: &Status) -> Option<Code> {
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).expect("a status fits headers");
        explained(&headers).map(|status| status.code())
    }

    #[test]
    fn only_the_transports_own_answers_change() {
        assert_eq!(code(&Status::internal("failed to decode")), Some(Code::InvalidArgument));
        assert_eq!(code(&Status::out_of_range("too large")), Some(Code::InvalidArgument));
        assert_eq!(code(&Status::unimplemented("no such method")), None);
        assert_eq!(code(&super::super::status::of(&crate::error::Error::internal("x"))), None);
        assert!(explained(&HeaderMap::new()).is_none());
    }
}
