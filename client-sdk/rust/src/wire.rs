//! A channel that is safe against malformed answers. The transport panics on a details trailer that is not base64, so
//! such a trailer is dropped.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Error};

const DETAILS: &str = "grpc-status-details-bin";

/// Channel that the generated clients use.
#[derive(Debug, Clone)]
pub(crate) struct Wire(pub(crate) Channel);

impl Service<http::Request<Body>> for Wire {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            drop_garbled(answer.headers_mut());
            Ok(answer.map(|body| {
                Body::new(body.map_frame(|mut frame| {
                    if let Some(trailers) = frame.trailers_mut() {
                        drop_garbled(trailers);
                    }
                    frame
                }))
            }))
        })
    }
}

fn drop_garbled(headers: &mut http::HeaderMap) {
    if !headers.contains_key(DETAILS) {
        return;
    }
    let mut metadata = MetadataMap::from_headers(mem::take(headers));
    if metadata.get_bin(DETAILS).is_some_and(|details| details.to_bytes().is_err()) {
        metadata.remove_bin(DETAILS);
    }
    *headers = metadata.into_headers();
}
