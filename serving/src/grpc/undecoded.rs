//! Requests that the transport could not decode. It answers them itself, before any code of this crate runs and without
//! an `ErrorInfo`. This layer gives those answers the code and the reason of a bad request.

use std::collections::HashMap;
use std::task::{Context, Poll};

use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;
use tower::{Layer, Service};

/// Layer that adds the missing details to answers of the transport.
#[derive(Clone, Copy)]
pub struct ExplainUndecoded {
    /// Most bytes of one message.
    pub max_message_bytes: usize,
    /// Name of that limit in the configuration, such as `limits.max_message_size`.
    pub limit_name: &'static str,
}

/// Service that [`ExplainUndecoded`] wraps around another.
#[derive(Clone)]
pub struct Explained<S> {
    inner: S,
    layer: ExplainUndecoded,
}

impl<S> Layer<S> for ExplainUndecoded {
    type Service = Explained<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Explained { inner, layer: *self }
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
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let answer = self.inner.call(request);
        let layer = self.layer;
        Box::pin(async move {
            let response = answer.await?;
            Ok(match layer.explained(response.headers()) {
                Some(status) => status.into_http(),
                None => response,
            })
        })
    }
}

impl ExplainUndecoded {
    /// Returns a status with details for an answer of the transport. Errors of this crate's services carry details and
    /// pass unchanged. A success has no status among its headers.
    fn explained(self, headers: &HeaderMap) -> Option<Status> {
        let status = Status::from_header_map(headers)?;
        if !status.details().is_empty() {
            return None;
        }
        let (reason, metadata) = match status.code() {
            // Tonic uses this code when the bytes are not the message: not protobuf, not UTF-8, too deep.
            Code::Internal => (ErrorReason::InvalidField, HashMap::new()),
            // Tonic uses this code when the message is longer than the limit.
            Code::OutOfRange => (ErrorReason::LimitExceeded, self.limit()),
            _ => return None,
        };
        let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, metadata);
        let message = format!("the request can't be decoded: {}", status.message());
        Some(Status::with_error_details(Code::InvalidArgument, message, details))
    }

    fn limit(self) -> HashMap<String, String> {
        let maximum = self.max_message_bytes.to_string();
        let pairs = [("limit", self.limit_name), ("maximum", maximum.as_str())];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: ExplainUndecoded =
        ExplainUndecoded { max_message_bytes: 1, limit_name: "limits.max_message_size" };

    fn code(status: &Status) -> Option<Code> {
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).expect("a status fits headers");
        LAYER.explained(&headers).map(|status| status.code())
    }

    #[test]
    fn only_the_transports_own_answers_change() {
        assert_eq!(code(&Status::internal("failed to decode")), Some(Code::InvalidArgument));
        assert_eq!(code(&Status::out_of_range("too large")), Some(Code::InvalidArgument));
        assert_eq!(code(&Status::unimplemented("no such method")), None);
        let details = ErrorDetails::with_error_info("INTERNAL", ERROR_DOMAIN, HashMap::new());
        assert_eq!(code(&Status::with_error_details(Code::Internal, "x", details)), None);
        assert!(LAYER.explained(&HeaderMap::new()).is_none());
    }
}
