//! Implementation of `EncoderService`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_server::EncoderService;
use toolgate_proto::v1::{DescribeRequest, DescribeResponse, EmbedRequest, EmbedResponse};
use toolgate_serving::time_asked;
use toolgate_telemetry::CallSpan;
use tracing::{Instrument as _, error};

use super::call_error::CallError;
use super::callers::Callers;
use super::{embeddings, request, status};
use crate::lifecycle::{Lifecycle, Phase};
use crate::telemetry::Metrics;
use toolgate_encoder::{Embedding, EncoderHandle, Flow, ModelDescription, estimated_tokens};

const EMBED: &str = "EncoderService/Embed";
const DESCRIBE: &str = "EncoderService/Describe";

/// Longest time that a call may take, whatever deadline its caller sets.
const DEADLINE_MAX: Duration = Duration::from_secs(60);

/// Most KiB of text that may wait or run at once, so that a queue of large requests does not exhaust the memory.
const WAITING_KIB_MAX: usize = 64 << 10;

/// Implementation of the encoder's gRPC service.
pub(crate) struct Face {
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) metrics: Arc<Metrics>,
    waiting_kib: Semaphore,
    /// Estimated tokens of all texts that wait or run.
    outstanding: AtomicU64,
    callers: Callers,
}

/// Tokens of one request among those that wait or run. Dropping it takes them off.
struct Outstanding<'a> {
    all: &'a AtomicU64,
    tokens: u64,
}

impl<'a> Outstanding<'a> {
    fn add(all: &'a AtomicU64, texts: &[String]) -> Self {
        let tokens = estimated_tokens(texts);
        all.fetch_add(tokens, Ordering::Relaxed);
        Self { all, tokens }
    }

    /// Returns the tokens of all other requests.
    fn of_others(&self) -> u32 {
        let others = self.all.load(Ordering::Relaxed).saturating_sub(self.tokens);
        u32::try_from(others).unwrap_or(u32::MAX)
    }
}

impl Drop for Outstanding<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.tokens, Ordering::Relaxed);
    }
}

impl Face {
    pub(crate) fn new(lifecycle: Arc<Lifecycle>, metrics: Arc<Metrics>) -> Self {
        let waiting_kib = Semaphore::new(WAITING_KIB_MAX);
        let outstanding = AtomicU64::new(0);
        Self { lifecycle, metrics, waiting_kib, outstanding, callers: Callers::default() }
    }

    /// Records the outcome of a call, and converts it to a response or a status.
    fn answer<R>(
        &self,
        method: &'static str,
        call: &CallSpan,
        started: Instant,
        outcome: Result<R, CallError>,
    ) -> Result<Response<R>, Status> {
        let _in_call = call.span().enter();
        if let Err(CallError::Device(cause)) = &outcome {
            error!(cause, "the device failed a call");
        }
        let (code, reason) = outcome.as_ref().err().map_or(("OK", ""), status::names);
        self.metrics.call(method, code, reason, started.elapsed().as_secs_f64());
        call.answered(code, reason);
        outcome.map(Response::new).map_err(|failure| status::of(&failure))
    }

    /// Returns the encoder if calls are answered in this phase.
    fn encoder(&self) -> Result<&EncoderHandle, CallError> {
        match self.lifecycle.phase() {
            Phase::Starting => Err(CallError::Starting),
            Phase::Draining => Err(CallError::Draining),
            Phase::Broken => Err(broken()),
            Phase::Serving => self.lifecycle.encoder().ok_or(CallError::Starting),
        }
    }

    async fn embed_texts(
        &self,
        message: EmbedRequest,
        until: Instant,
    ) -> Result<EmbedResponse, CallError> {
        let encoder = self.encoder()?;
        request::check(&message, &encoder.model().fingerprint)?;
        let _room = self.room(&message.texts)?;
        let outstanding = Outstanding::add(&self.outstanding, &message.texts);
        let half_precision = message.half_precision;
        let callers = self.callers.called(message.caller, Instant::now());
        let embedded = tokio::select! {
            // If the answer and the canary's verdict come together, the answer is not trusted.
            biased;
            () = self.lifecycle.reached(Phase::Broken) => Err(broken()),
            embedded = encoder.embed(message.texts, Flow::new(message.flow), Some(until)) => {
                embedded.map_err(CallError::from)
            }
        };
        if matches!(embedded, Err(CallError::Device(_))) {
            self.lifecycle.suspicion.notify_one();
        }
        let outstanding_tokens = outstanding.of_others();
        let answer = render(encoder.model(), &embedded?, half_precision);
        Ok(EmbedResponse { outstanding_tokens, callers, ..answer })
    }

    fn room(&self, texts: &[String]) -> Result<SemaphorePermit<'_>, CallError> {
        let bytes: usize = texts.iter().map(String::len).sum();
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).map_err(|_| CallError::Overloaded)?;
        self.waiting_kib.try_acquire_many(kib).map_err(|_| CallError::Overloaded)
    }
}

#[tonic::async_trait]
impl EncoderService for Face {
    async fn embed(&self, call: Request<EmbedRequest>) -> Result<Response<EmbedResponse>, Status> {
        let started = Instant::now();
        let asked = time_asked(call.metadata().as_ref()).unwrap_or(DEADLINE_MAX);
        let until = started + asked.min(DEADLINE_MAX);
        let span = CallSpan::served(EMBED, call.metadata().as_ref());
        let work = self.embed_texts(call.into_inner(), until);
        let outcome = work.instrument(span.span().clone()).await;
        self.answer(EMBED, &span, started, outcome)
    }

    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        let outcome = self.encoder().map(|encoder| describe(encoder.model()));
        // Servers poll until the worker is ready, which would fill traces.
        self.answer(DESCRIBE, &CallSpan::untraced(), Instant::now(), outcome)
    }
}

fn broken() -> CallError {
    CallError::Device("the canary found the device unfit".into())
}

/// Renders an answer, in half precision if the caller reads it and it holds the embeddings.
fn render(model: &ModelDescription, embedded: &[Embedding], half_precision: bool) -> EmbedResponse {
    let halves = half_precision.then(|| embeddings::halves(embedded)).flatten();
    EmbedResponse {
        half_precision: halves.is_some(),
        embeddings: halves.unwrap_or_else(|| embeddings::singles(embedded)).into(),
        dimensions: model.dimensions as u32,
        token_counts: embedded.iter().map(|one| one.tokens).collect(),
        truncated: embedded.iter().map(|one| one.truncated).collect(),
        fingerprint: model.fingerprint.clone(),
        ..EmbedResponse::default()
    }
}

fn describe(model: &ModelDescription) -> DescribeResponse {
    DescribeResponse {
        model: model.name.clone(),
        fingerprint: model.fingerprint.clone(),
        dimensions: model.dimensions as u32,
        max_tokens: model.max_tokens as u32,
        backend: model.backend.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_the_tokens_of_the_others_that_are_not_over() {
        let all = AtomicU64::new(0);
        let first = Outstanding::add(&all, &["x".repeat(40), String::new()]);
        assert_eq!(first.of_others(), 0);
        let second = Outstanding::add(&all, &["x".repeat(400)]);
        assert_eq!((first.of_others(), second.of_others()), (102, 14));
        drop(second);
        assert_eq!(first.of_others(), 0);
    }
}
