//! Encoder workers, `EncoderService`: one attempt a call, answers checked for their shape. Which worker is
//! asked, and what follows a failure, is for whoever holds several of them.

use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_client::EncoderServiceClient;
use toolgate_proto::v1::{DescribeRequest, EmbedRequest, EmbedResponse};

use crate::error::Error;
use crate::options::EncoderOptions;
use crate::target::{address, parse};

/// A connection to one encoder worker, made by the first call and again after it broke. Cloning is cheap
/// and shares the connection.
#[derive(Debug, Clone)]
pub struct EncoderClient {
    endpoint: String,
    service: EncoderServiceClient<Channel>,
}

/// What a worker has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerDescription {
    /// Identifies the model: its files and settings.
    pub fingerprint: String,
    /// The length of one embedding.
    pub dimensions: usize,
    /// The device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    pub backend: String,
}

/// One text's embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerEmbedding {
    /// The vector, as the worker sent it.
    pub vector: Vec<f32>,
    /// Whether the text was longer than the model reads.
    pub truncated: bool,
}

/// Whose texts a call brings, and where it belongs.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbedOptions<'a> {
    /// Texts of one flow wait for each other at the worker, and not for those of others; 0: these are a flow by
    /// themselves.
    pub flow: u64,
    /// The call's place in a trace; `None` for a trace of its own, if the worker wants one.
    pub trace: Option<&'a TraceContext>,
}

/// The place of a call in a trace, as W3C Trace Context writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, the span that calls, and whether it is sampled.
    pub traceparent: String,
    /// What tracing systems add to it; may be empty.
    pub tracestate: String,
}

impl TraceContext {
    /// The place of a call that nobody wants to see in a trace, whatever the worker would decide.
    #[must_use]
    pub fn not_sampled() -> Self {
        let traceparent = "00-00000000000000000000000000000001-0000000000000001-00".into();
        Self { traceparent, tracestate: String::new() }
    }
}

impl EncoderClient {
    /// A client of the worker at `endpoint`, such as `127.0.0.1:7080`, that connects with its first call.
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is no address.
    pub fn lazy(endpoint: &str, options: &EncoderOptions) -> Result<Self, Error> {
        let target = parse(endpoint, options.connect_timeout)?;
        if target.uri().scheme_str() == Some("https") {
            let problem = "workers are called without TLS".into();
            return Err(Error::Endpoint { endpoint: endpoint.to_owned(), problem });
        }
        let target = target
            .http2_keep_alive_interval(options.keep_alive_interval)
            .keep_alive_timeout(options.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let service = EncoderServiceClient::new(target.connect_lazy())
            .max_decoding_message_size(options.max_message_bytes);
        Ok(Self { endpoint: address(&target), service })
    }

    /// The address that is called.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What the worker has loaded.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn describe(&self, within: Duration) -> Result<WorkerDescription, Error> {
        let mut service = self.service.clone();
        let request = timed(DescribeRequest {}, within);
        let answer = self.once("Describe", within, service.describe(request)).await?;
        Ok(WorkerDescription {
            fingerprint: answer.fingerprint,
            dimensions: answer.dimensions as usize,
            backend: answer.backend,
        })
    }

    /// Embeds texts, one embedding each, in their order; a worker of another fingerprint refuses. Dropping the future
    /// cancels the call at the worker.
    ///
    /// # Errors
    /// As every call, and [`Error::Answer`] when the answer is not one embedding per text.
    pub async fn embed(
        &self,
        texts: Vec<String>,
        fingerprint: &str,
        within: Duration,
        EmbedOptions { flow, trace }: EmbedOptions<'_>,
    ) -> Result<Vec<WorkerEmbedding>, Error> {
        let count = texts.len();
        let mut service = self.service.clone();
        let message = EmbedRequest { texts, fingerprint: fingerprint.to_owned(), flow };
        let call = service.embed(placed(timed(message, within), trace));
        let answer = self.once("Embed", within, call).await?;
        read(&answer, count, fingerprint)
            .map_err(|problem| Error::Answer { endpoint: self.endpoint.clone(), problem })
    }

    /// One attempt. The worker is told the deadline; a worker that hangs is left at it all the same.
    async fn once<A>(
        &self,
        rpc: &'static str,
        deadline: Duration,
        call: impl Future<Output = Result<Response<A>, Status>>,
    ) -> Result<A, Error> {
        match tokio::time::timeout(deadline, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::from_status(rpc, &self.endpoint, &status)),
            Err(_elapsed) => {
                Err(Error::Deadline { rpc, endpoint: self.endpoint.clone(), deadline })
            }
        }
    }
}

fn timed<T>(message: T, within: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(within);
    request
}

fn placed<T>(mut request: Request<T>, trace: Option<&TraceContext>) -> Request<T> {
    let Some(trace) = trace else { return request };
    for (name, value) in [("traceparent", &trace.traceparent), ("tracestate", &trace.tracestate)] {
        // What is no header is no trace either.
        if !value.is_empty()
            && let Ok(value) = value.parse()
        {
            request.metadata_mut().insert(name, value);
        }
    }
    request
}

/// The embeddings, or what is wrong with the answer.
fn read(
    answer: &EmbedResponse,
    count: usize,
    fingerprint: &str,
) -> Result<Vec<WorkerEmbedding>, String> {
    if answer.fingerprint != fingerprint {
        return Err("it is of another model".into());
    }
    let bytes = answer.embeddings.len();
    let width = answer.dimensions as usize * size_of::<f32>();
    if width == 0 || width.checked_mul(count) != Some(bytes) {
        let dimensions = answer.dimensions;
        return Err(format!("{bytes} bytes are not {count} texts of {dimensions} numbers"));
    }
    if answer.truncated.len() != count {
        return Err(format!("`truncated` has {} values for {count} texts", answer.truncated.len()));
    }
    let vectors = answer.embeddings.chunks_exact(width).map(|bytes| {
        let (numbers, _) = bytes.as_chunks();
        numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
    });
    let pairs = vectors.zip(&answer.truncated);
    Ok(pairs.map(|(vector, truncated)| WorkerEmbedding { vector, truncated: *truncated }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(numbers: &[f32], dimensions: u32, truncated: usize) -> EmbedResponse {
        EmbedResponse {
            embeddings: numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            dimensions,
            truncated: vec![false; truncated],
            fingerprint: "f".into(),
            ..Default::default()
        }
    }

    #[test]
    fn numbers_are_read_text_by_text() {
        let read = read(&answer(&[1.0, 2.0, 3.0, 4.0], 2, 2), 2, "f").expect("a sound answer");
        let vectors: Vec<_> = read.into_iter().map(|one| one.vector).collect();
        assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
    }

    #[test]
    fn a_call_is_placed_in_its_trace() {
        let headers = |trace: Option<&TraceContext>| {
            let metadata = placed(Request::new(()), trace).into_parts().0;
            ["traceparent", "tracestate"].map(|name| metadata.get(name).cloned())
        };
        assert_eq!(headers(None), [None, None]);
        let [parent, state] = headers(Some(&TraceContext::not_sampled()));
        assert!(parent.is_some_and(|parent| parent.as_bytes().ends_with(b"-00")));
        assert_eq!(state, None);
        let odd = TraceContext { traceparent: "\n".into(), tracestate: "a=b".into() };
        let [parent, state] = headers(Some(&odd));
        assert!(parent.is_none() && state.is_some_and(|state| state == "a=b"));
    }

    #[test]
    fn an_answer_of_another_shape_is_refused() {
        for (answer, count, fingerprint) in [
            (answer(&[1.0, 2.0, 3.0], 2, 2), 2, "f"),
            (answer(&[], 0, 1), 1, "f"),
            (answer(&[1.0, 2.0], 2, 1), 2, "f"),
            (answer(&[1.0, 2.0], 2, 0), 1, "f"),
            (answer(&[1.0, 2.0], 2, 1), 1, "g"),
            (answer(&[1.0], u32::MAX, 1), usize::MAX, "f"),
        ] {
            assert!(read(&answer, count, fingerprint).is_err(), "{answer:?}");
        }
    }
}
