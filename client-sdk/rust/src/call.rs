//! One call, independent of the RPC: its credentials, its deadline, its attempts and the pauses between them.

use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::metadata::{AsciiMetadataValue, BinaryMetadataValue, MetadataMap};
use tonic::{Request, Response, Status};

use crate::client::Client;
use crate::error::Error;
use crate::options::TraceContext;

/// Rule for repeating a request whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Safe to repeat, because a second request changes nothing more.
    Safe,
    /// Safe to repeat only if the service itself said that it did nothing.
    OnlyIfRefused,
}

/// An RPC: its name, its rule for repeats, and whether its answers stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rpc {
    name: &'static str,
    repeat: Repeat,
    streams: bool,
}

/// Longest deadline. Longer ones are cut to this year, so that the clock can't overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Metadata that name the principal that a call is made for.
const PRINCIPAL_METADATA: &str = "toolgate-principal-bin";

impl Rpc {
    /// Describes an RPC that only reads.
    pub(crate) const fn read(name: &'static str) -> Self {
        Self { name, repeat: Repeat::Safe, streams: false }
    }

    /// Describes an RPC that changes something.
    pub(crate) const fn change(name: &'static str, repeat: Repeat) -> Self {
        Self { name, repeat, streams: false }
    }

    /// Describes an RPC that opens a stream of answers. The deadline applies to opening the stream.
    pub(crate) const fn stream(name: &'static str) -> Self {
        Self { name, repeat: Repeat::Safe, streams: true }
    }

    fn may_repeat(self, error: &Error) -> bool {
        error.is_unavailable() && (self.repeat == Repeat::Safe || error.reason().is_some())
    }
}

impl Client {
    /// Calls `send` until it succeeds, fails for good, or the deadline passes.
    pub(crate) async fn call<Q, A, F>(
        &self,
        rpc: Rpc,
        message: Q,
        mut send: impl FnMut(Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        Q: Message + Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.check_size(rpc, &message)?;
        let end = Instant::now() + self.deadline().min(LONGEST);
        let mut attempt = 1;
        let mut refusal = None;
        loop {
            let answering = async {
                let request = self.request(rpc, message.clone(), end).await?;
                let failed = |status| Error::from_status(rpc.name, self.endpoint(), &status);
                send(request).await.map_err(failed)
            };
            let error = match timeout_at(end, answering).await {
                Ok(Ok(answer)) => {
                    self.throttle().succeeded();
                    return Ok(answer.into_inner());
                }
                Ok(Err(error)) => error,
                // The time that a refusal left says nothing of the service, and the refusal does.
                Err(_elapsed) => return Err(refusal.unwrap_or_else(|| self.too_late(rpc))),
            };
            // The service is told the deadline of a call, and may say itself that it passed.
            if !rpc.streams && Instant::now() >= end && error.reason().is_none() {
                return Err(self.too_late(rpc));
            }
            if error.is_unavailable() {
                self.throttle().failed();
            }
            let pause = self.pause_before_next(attempt, &error);
            let in_time = Instant::now() + pause < end;
            let has_attempts = attempt < self.options().retry.max_attempts;
            let allowed = has_attempts && self.throttle().allows_retry();
            if !(rpc.may_repeat(&error) && allowed && in_time) {
                return Err(error);
            }
            refusal = rpc.streams.then_some(error);
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn request<Q>(&self, rpc: Rpc, message: Q, end: Instant) -> Result<Request<Q>, Error> {
        let mut request = Request::new(message);
        if let Some(authorization) = self.options().credentials.authorization().await? {
            request.metadata_mut().insert("authorization", authorization);
        }
        let principal = self.options().principal.as_bytes();
        if !principal.is_empty() {
            let value = BinaryMetadataValue::from_bytes(principal);
            request.metadata_mut().insert_bin(PRINCIPAL_METADATA, value);
        }
        if let Some(trace) = &self.options().trace {
            add_trace(request.metadata_mut(), trace);
        }
        if !rpc.streams {
            request.set_timeout(end.saturating_duration_since(Instant::now()));
        }
        Ok(request)
    }

    /// Refuses a request that is too large. The transport would only report that the stream broke.
    fn check_size(&self, rpc: Rpc, message: &impl Message) -> Result<(), Error> {
        let bytes = message.encoded_len();
        let limit = self.options().max_request_bytes;
        if bytes > limit {
            return Err(Error::TooLarge { rpc: rpc.name, bytes, limit });
        }
        Ok(())
    }

    fn too_late(&self, rpc: Rpc) -> Error {
        Error::Deadline {
            rpc: rpc.name,
            endpoint: self.endpoint().to_owned(),
            deadline: self.deadline(),
        }
    }

    fn pause_before_next(&self, attempt: u32, error: &Error) -> Duration {
        let retry = self.options().retry;
        backoff(retry.base_delay, retry.max_delay, attempt)
            .max(error.retry_delay().unwrap_or_default())
    }
}

/// Adds the trace of a call, as far as headers can carry it.
fn add_trace(metadata: &mut MetadataMap, trace: &TraceContext) {
    let headers = [("traceparent", &trace.traceparent), ("tracestate", &trace.tracestate)];
    for (name, text) in headers.into_iter().filter(|(_, text)| !text.is_empty()) {
        if let Ok(value) = AsciiMetadataValue::try_from(text) {
            metadata.insert(name, value);
        }
    }
}

/// Returns the pause after the `attempt`th failure in a row. It doubles up to `longest`, and a random part of up to a
/// half is taken off.
pub(crate) fn backoff(first: Duration, longest: Duration, attempt: u32) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    doubled.min(longest).mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use toolgate_proto::v1;

    use super::*;
    use crate::options::ClientOptions;

    #[test]
    fn the_trace_is_sent_as_far_as_headers_can_carry_it() {
        let mut metadata = MetadataMap::new();
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
        let tracestate = "a=\n".to_owned();
        add_trace(&mut metadata, &TraceContext { traceparent, tracestate });
        let sent = metadata.get("traceparent").and_then(|value| value.to_str().ok());
        assert_eq!(sent, Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        assert!(!metadata.contains_key("tracestate"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_late_after_a_refusal_ends_with_the_refusal() {
        let cases = [
            (Rpc::stream("WatchCatalog"), Code::Unavailable),
            (Rpc::read("Route"), Code::DeadlineExceeded),
        ];
        for (rpc, code) in cases {
            let options = ClientOptions::default();
            let client = Client::lazy("127.0.0.1:1", options).expect("an address");
            let mut attempts = 0;
            let send = |_| {
                attempts += 1;
                let is_refused = attempts == 1;
                async move {
                    if is_refused {
                        return Err(Status::unavailable("draining"));
                    }
                    std::future::pending().await
                }
            };
            let result: Result<(), Error> =
                client.call(rpc, v1::WatchCatalogRequest::default(), send).await;
            let error = result.expect_err("late");
            assert_eq!((error.code(), attempts), (Some(code), 2), "{error:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_with_half_of_them_random() {
        let first = Duration::from_millis(100);
        let longest = Duration::from_secs(1);
        for (attempt, whole) in [(1, 100), (2, 200), (4, 800), (5, 1_000), (u32::MAX, 1_000)] {
            let whole = Duration::from_millis(whole);
            let drawn: Vec<Duration> = (0..64).map(|_| backoff(first, longest, attempt)).collect();
            assert!(drawn.iter().all(|pause| (whole / 2..=whole).contains(pause)), "{drawn:?}");
            let middle = whole.mul_f64(0.75);
            assert!(drawn.iter().any(|pause| *pause < middle), "{drawn:?}");
            assert!(drawn.iter().any(|pause| *pause > middle), "{drawn:?}");
        }
    }
}
