//! One worker: its connection, its load and its health. It makes one attempt at a time; `attempt` handles failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_encoder::estimated_tokens as tokens_of;
use toolgate_encoder_client::{
    Code, ConnectionId, EmbedAnswer, EmbedOptions, EncoderClient, EncoderOptions,
    Error as ClientError, TraceContext,
};
use toolgate_telemetry::{CallSpan, trace_headers};
use tracing::{Instrument as _, info, warn};

use super::canaries::KnownText;
use super::health::{Health, State};
use super::joining::{NotJoined, Queue, ShortRequest};
use super::reference::Reference;
use super::watch::{Pause, Rounds, shared};
use crate::encoder::WorkerMetrics;
use crate::encoder::{Embedded, Flow};

/// Maximum parallel requests of callers to one worker.
const IN_FLIGHT_MAX: usize = 256;

/// Maximum texts of a request that is joined with others. More are a batch by themselves.
const SHORT_MAX: usize = 8;

/// Minimum tokens of other servers that count. Most of their checks have fewer, and are not to tip the scales between idle
/// workers.
const OF_OTHERS_MIN: u64 = 256;

/// Maximum texts kept of those that a worker answered wrongly.
const CAUGHT_MAX: usize = 8;

/// Minimum time that a worker must have had for a late answer to count as a failure.
const FAIR_TIME: Duration = Duration::from_millis(250);

/// Tier of a worker. Workers on GPUs are asked before workers on CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Gpu,
    Cpu,
}

/// Reason why a worker did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Worker that has too much to do.
    #[error("worker {0} is busy")]
    Busy(String),
    /// No answer in time.
    #[error("worker {0} did not answer in time")]
    Late(String),
    /// Worker that can't be reached, or that failed.
    #[error("worker {0} failed")]
    Broken(String, #[source] ClientError),
    /// Answer that makes no sense.
    #[error("worker {0} gave an answer that makes no sense")]
    Garbage(String),
    /// Request that the worker refused as invalid.
    #[error("worker {0} refused the request")]
    Refused(String, #[source] ClientError),
    /// Worker that has another model.
    #[error("worker {0} has another model")]
    OtherModel(String),
}

/// Worker of the pool.
pub(super) struct Member {
    pub(super) address: String,
    client: EncoderClient,
    fingerprint: String,
    pub(super) queue: Mutex<Queue>,
    health: Mutex<Health>,
    tier: Mutex<Tier>,
    tokens: AtomicU64,
    /// Tokens of the requests that are under way, checks among them.
    on_the_wire: AtomicU64,
    /// Tokens that other servers have outstanding at the worker, as its last answer tells.
    tokens_of_others: AtomicU64,
    /// Servers that share the worker, as its last answer tells.
    sharers: AtomicU32,
    /// Signal that the worker failed a request, so that its next check comes early.
    pub(super) doubt: Notify,
    in_flight: AtomicUsize,
    said_absent: AtomicBool,
    /// Texts that it answered wrongly although it passed its checks, oldest first.
    caught: Mutex<Vec<KnownText>>,
    pub(super) metrics: WorkerMetrics,
}

/// Request to a worker.
pub(super) struct Call {
    pub(super) texts: Vec<String>,
    pub(super) flow: Flow,
    pub(super) within: Duration,
    pub(super) trace: Option<TraceContext>,
    /// Connection that it goes over; `None` for the one with the fewest requests under way.
    pub(super) over: Option<ConnectionId>,
}

/// Tokens of one request that is under way. Dropping it takes them off.
struct OnTheWire<'a> {
    all: &'a AtomicU64,
    tokens: u64,
}

impl<'a> OnTheWire<'a> {
    fn add(all: &'a AtomicU64, tokens: u64) -> Self {
        all.fetch_add(tokens, Ordering::Relaxed);
        Self { all, tokens }
    }
}

impl Drop for OnTheWire<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.tokens, Ordering::Relaxed);
    }
}

/// Work in progress at a worker. Dropping it takes the work off the worker's load.
pub(super) struct Load {
    pub(super) member: Arc<Member>,
    tokens: u64,
}

impl Load {
    pub(super) fn new(member: Arc<Member>, tokens: u64) -> Self {
        let before = member.tokens.fetch_add(tokens, Ordering::Relaxed);
        member.in_flight.fetch_add(1, Ordering::Relaxed);
        member.metrics.outstanding(before + tokens);
        Self { member, tokens }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let before = self.member.tokens.fetch_sub(self.tokens, Ordering::Relaxed);
        self.member.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.member.metrics.outstanding(before.saturating_sub(self.tokens));
    }
}

impl Member {
    /// Creates a worker that has not been checked yet. Its model must have the reference's fingerprint.
    pub(super) fn new(
        address: &str,
        options: &EncoderOptions,
        reference: &Reference,
        metrics: WorkerMetrics,
    ) -> Result<Self, ClientError> {
        metrics.state("new");
        Ok(Self {
            address: address.to_owned(),
            client: EncoderClient::lazy(address, options)?,
            fingerprint: reference.fingerprint.clone(),
            queue: Mutex::default(),
            health: Mutex::new(Health::new()),
            tier: Mutex::new(Tier::Cpu),
            tokens: AtomicU64::new(0),
            on_the_wire: AtomicU64::new(0),
            tokens_of_others: AtomicU64::new(0),
            sharers: AtomicU32::new(1),
            doubt: Notify::new(),
            in_flight: AtomicUsize::new(0),
            said_absent: AtomicBool::new(false),
            caught: Mutex::default(),
            metrics,
        })
    }

    /// Returns the worker's tier if it can take one more request.
    pub(super) fn usable(&self) -> Option<Tier> {
        let has_room = self.in_flight.load(Ordering::Relaxed) < IN_FLIGHT_MAX;
        (has_room && self.is_serving()).then(|| self.tier())
    }

    pub(super) fn is_serving(&self) -> bool {
        self.state() == State::Serving
    }

    fn state(&self) -> State {
        self.health.lock().state()
    }

    pub(super) fn tier(&self) -> Tier {
        *self.tier.lock()
    }

    /// Returns the estimated tokens that the worker has not answered yet: those that it was sent from here, and those of
    /// other servers. Checks renew the latter where there is no traffic.
    pub(super) fn tokens(&self) -> u64 {
        let of_others = self.tokens_of_others.load(Ordering::Relaxed);
        self.tokens.load(Ordering::Relaxed).saturating_add(of_others)
    }

    /// Embeds with a single attempt; does not retry.
    pub(super) async fn embed(
        self: &Arc<Self>,
        texts: Vec<String>,
        flow: Flow,
        reference: &Reference,
        within: Duration,
    ) -> Result<Vec<Embedded>, Failed> {
        let began = Instant::now();
        let call = CallSpan::to_peer("EncoderService/Embed", &self.address);
        // A batch takes a CPU as long as its texts one by one, so that joined ones would only be late.
        let is_joined = self.tier() == Tier::Gpu && texts.len() <= SHORT_MAX && !flow.is_yielding();
        let asking = async {
            let trace = trace_headers().map(|headers| TraceContext {
                traceparent: headers.traceparent,
                tracestate: headers.tracestate,
            });
            if is_joined {
                self.embed_joined(ShortRequest { texts, flow, within, trace }, reference).await
            } else {
                self.ask(Call { texts, flow, within, trace, over: None }, reference).await
            }
        };
        let answer = asking.instrument(call.span().clone()).await;
        if let Err(failed) = &answer {
            call.failed(failed.result());
        }
        let now = Instant::now();
        self.metrics.request(answer.as_ref().map_or_else(Failed::result, |_| "ok"));
        match &answer {
            Ok(_) => {
                self.metrics.took((now - began).as_secs_f64());
                self.change("ok", |health| health.answered(now));
            }
            Err(failed) if !is_joined => self.note(failed, within),
            Err(_) => {}
        }
        answer
    }

    async fn embed_joined(
        self: &Arc<Self>,
        request: ShortRequest,
        reference: &Reference,
    ) -> Result<Vec<Embedded>, Failed> {
        let count = request.texts.len();
        let within = request.within;
        let answer = self.join(request).await.map_err(|reason| match reason {
            NotJoined::Full => Failed::Busy(self.address.clone()),
            NotJoined::Late => Failed::Late(self.address.clone()),
            NotJoined::Failed(error) => self.failure(error),
        })?;
        let embedded = self.sound(answer, count, reference);
        if let Err(failed) = &embedded {
            self.note(failed, within);
        }
        embedded
    }

    /// Tells the worker's health of a request that failed.
    pub(super) fn note_failure(&self, error: &ClientError, within: Duration) {
        self.note(&self.failure(error.clone()), within);
    }

    /// Tells the worker's health of a request that it did not answer in this time.
    pub(super) fn note_late(&self, within: Duration) {
        self.note(&Failed::Late(self.address.clone()), within);
    }

    fn note(&self, failed: &Failed, within: Duration) {
        let now = Instant::now();
        let spread = fastrand::f64();
        let result = failed.result();
        match failed {
            Failed::Busy(_) | Failed::Refused(..) => {}
            Failed::Late(_) if within < FAIR_TIME => {}
            Failed::Late(_) | Failed::Broken(..) => {
                self.change(result, |health| health.failed(now, spread));
                self.doubt.notify_one();
            }
            Failed::Garbage(_) => self.change(result, |health| health.misbehaved(now, spread)),
            Failed::OtherModel(_) => self.change(result, Health::other_model),
        }
    }

    /// Takes the worker out of use for an answer that this process contradicts. To return, it must answer that text
    /// correctly.
    pub(super) fn contradicted(&self, text: KnownText) {
        {
            let mut caught = self.caught.lock();
            if caught.len() == CAUGHT_MAX {
                caught.remove(0);
            }
            caught.push(text);
        }
        let now = Instant::now();
        let spread = fastrand::f64();
        self.change("different", |health| health.contradicted(now, spread));
    }

    /// Checks the worker with known texts. A worker that is not in use is first asked for its model.
    pub(super) async fn check(&self, reference: &Reference, rounds: &Rounds) {
        let sent = Instant::now();
        let checked = self.canary(reference, rounds).await;
        let now = Instant::now();
        let spread = fastrand::f64();
        match &checked {
            Ok(()) => self.change("ok", |health| health.canary_passed(now)),
            Err(Failed::Busy(_)) if self.is_serving() => {}
            Err(failed @ Failed::Late(_)) => {
                self.change(failed.result(), |health| health.canary_late(sent, now, spread));
            }
            Err(failed @ Failed::OtherModel(_)) => {
                self.change(failed.result(), Health::other_model);
            }
            Err(failed) => {
                self.change(failed.result(), |health| health.misbehaved(now, spread));
            }
        }
        if let Err(failed) = &checked {
            self.say_absent(failed);
        }
    }

    /// Logs once that a new worker is not ready. A wrong address must show up in the log, but a worker that loads its
    /// model must not be logged every second.
    fn say_absent(&self, failed: &Failed) {
        let is_new = self.state() == State::New;
        if is_new && !self.said_absent.swap(true, Ordering::Relaxed) {
            let cause = std::error::Error::source(failed).map(ToString::to_string);
            info!(worker = self.address, %failed, cause, "the encoder worker is not ready yet");
        }
    }

    /// Returns the time until the next check. Servers share the checks of a worker that is in use. One that is not is
    /// checked by each as often as if it were alone, so that it comes back as soon.
    pub(super) fn next_check(&self, interval: Duration) -> Pause {
        let health = self.health.lock();
        // The pause of a worker that is out of use already has its jitter, and no check is sent before its end.
        let interval = interval.mul_f64(0.9 + 0.1 * fastrand::f64());
        let usual = health.next_canary(Instant::now(), interval);
        let sharers = if health.is_serving() { self.sharers.load(Ordering::Relaxed) } else { 1 };
        Pause { min: usual, max: shared(usual, sharers) }
    }

    async fn canary(&self, reference: &Reference, rounds: &Rounds) -> Result<(), Failed> {
        if !self.is_serving() {
            self.learn_model(reference, rounds).await?;
        }
        let caught = self.caught.lock().clone();
        let check = reference.draw_check(&caught);
        let within = rounds.timeout_for(check.texts.len());
        // The flow looks like those of tenants, so that the worker can't tell a check from traffic.
        let flow = Flow::new(fastrand::u64(..));
        let asked = self.over_two(within, |over| {
            let call = Call {
                texts: check.texts.clone(),
                flow,
                within: rounds.deadline_for(check.texts.len()),
                trace: unsampled_trace(),
                over: Some(over),
            };
            self.ask(call, reference)
        });
        if reference.passes(&check, &asked.await?) {
            return Ok(());
        }
        Err(Failed::Garbage(self.address.clone()))
    }

    /// Asks the worker for its model, which must be the reference's, and for its device.
    async fn learn_model(&self, reference: &Reference, rounds: &Rounds) -> Result<(), Failed> {
        let within = rounds.timeout_for(1);
        let described = self.over_two(within, |over| async move {
            let described = self.client.describe(within, over).await;
            described.map_err(|error| self.failure(error))
        });
        let described = described.await?;
        if described.fingerprint != reference.fingerprint {
            return Err(Failed::OtherModel(self.address.clone()));
        }
        let tier = if described.backend.starts_with("cuda") { Tier::Gpu } else { Tier::Cpu };
        *self.tier.lock() = tier;
        Ok(())
    }

    /// Makes a request of a check over the connection whose turn it is. If no answer has come after a third of `within`,
    /// or none can come, it is made over another connection too, and the first one's answer counts if both answer. A
    /// connection that stayed silent while another one answered is avoided from then on: the worker is well.
    async fn over_two<T, F>(
        &self,
        within: Duration,
        ask: impl Fn(ConnectionId) -> F,
    ) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let sent = Instant::now();
        let in_time = |over| {
            let asking = tokio::time::timeout_at((sent + within).into(), ask(over));
            async move { asking.await.unwrap_or_else(|_| Err(Failed::Late(self.address.clone()))) }
        };
        let over = self.client.next_in_turn();
        let mut first = Box::pin(in_time(over));
        let early = tokio::time::timeout(within / 3, &mut first).await.ok();
        let Some(other) = self.client.another_than(over) else {
            return match early {
                Some(answer) => answer,
                None => first.await,
            };
        };
        let (first, second) = match early {
            Some(answer) if is_answer(&answer) => return answer,
            Some(failed) => (failed, Box::pin(in_time(other)).await),
            None => Box::pin(async { tokio::join!(first, in_time(other)) }).await,
        };
        if is_answer(&first) {
            return first;
        }
        if self.client.avoid_if_silent(over, sent) {
            let worker = self.address.as_str();
            info!(worker, "a connection to the encoder worker is silent and gets no requests");
        }
        if is_answer(&second) { second } else { first }
    }

    async fn ask(&self, call: Call, reference: &Reference) -> Result<Vec<Embedded>, Failed> {
        let count = call.texts.len();
        let answer = self.call(call).await.map_err(|error| self.failure(error))?;
        self.sound(answer, count, reference)
    }

    /// Makes one request to the worker.
    pub(super) async fn call(&self, call: Call) -> Result<EmbedAnswer, ClientError> {
        let Call { texts, flow, within, trace, over } = call;
        let own = OnTheWire::add(&self.on_the_wire, tokens_of(&texts));
        let options = EmbedOptions {
            // The answers of a GPU are many enough for their bytes to count.
            half_precision: self.tier() == Tier::Gpu,
            flow: flow.number(),
            trace: trace.as_ref(),
            over,
        };
        let answer = self.client.embed(texts, &self.fingerprint, within, options).await?;
        let of_this_server = self.on_the_wire.load(Ordering::Relaxed).saturating_sub(own.tokens);
        let of_others = u64::from(answer.outstanding_tokens).saturating_sub(of_this_server);
        let of_others = if of_others < OF_OTHERS_MIN { 0 } else { of_others };
        self.tokens_of_others.store(of_others, Ordering::Relaxed);
        self.sharers.store(answer.callers.max(1), Ordering::Relaxed);
        Ok(answer)
    }

    /// Returns the embeddings of an answer for `count` texts, if they make sense.
    fn sound(
        &self,
        answer: EmbedAnswer,
        count: usize,
        reference: &Reference,
    ) -> Result<Vec<Embedded>, Failed> {
        let embedded: Vec<_> = answer
            .embeddings
            .into_iter()
            .map(|one| Embedded { vector: one.vector, truncated: one.truncated })
            .collect();
        if reference.is_sound(count, &embedded) {
            return Ok(embedded);
        }
        Err(Failed::Garbage(self.address.clone()))
    }

    fn failure(&self, error: ClientError) -> Failed {
        let address = self.address.clone();
        let code = error.code();
        match (&error, code) {
            // Only a time limit cancels a call, here or in the worker.
            (ClientError::Deadline { .. }, _)
            | (_, Some(Code::DeadlineExceeded | Code::Cancelled)) => Failed::Late(address),
            (ClientError::Answer { .. }, _) => Failed::Garbage(address),
            (_, Some(Code::ResourceExhausted)) => Failed::Busy(address),
            (_, Some(Code::FailedPrecondition)) => Failed::OtherModel(address),
            (_, Some(Code::InvalidArgument | Code::OutOfRange)) => Failed::Refused(address, error),
            _ => Failed::Broken(address, error),
        }
    }

    /// Changes the health, and reports a new state in the log and in metrics.
    fn change(&self, result: &'static str, change: impl FnOnce(&mut Health)) {
        let (before, after) = {
            let mut health = self.health.lock();
            let before = health.state();
            change(&mut health);
            (before, health.state())
        };
        if before == after {
            return;
        }
        let worker = self.address.as_str();
        match after {
            State::New => self.metrics.state("new"),
            State::Serving => {
                info!(worker, tier = ?self.tier(), "the encoder worker is in use");
                self.metrics.state("serving");
            }
            State::Ejected(_) => {
                if before == State::Serving {
                    warn!(worker, result, "the encoder worker is out of use until checked");
                    self.metrics.ejected(result);
                }
                self.metrics.state("ejected");
            }
            State::OtherModel => {
                warn!(worker, "the encoder worker has another model: it is not used");
                self.metrics.state("other_model");
            }
        }
    }
}

/// Returns true if the worker answered, whatever its answer is.
fn is_answer<T>(result: &Result<T, Failed>) -> bool {
    match result {
        Err(Failed::Late(_)) => false,
        Err(Failed::Broken(_, error)) => error.is_answer(),
        _ => true,
    }
}

/// Returns a random trace context that is never sampled, or `None` if calls carry no trace context.
fn unsampled_trace() -> Option<TraceContext> {
    trace_headers().map(|_| {
        let trace = fastrand::u128(1..);
        let span = fastrand::u64(1..);
        TraceContext {
            traceparent: format!("00-{trace:032x}-{span:016x}-00"),
            tracestate: String::new(),
        }
    })
}

impl Failed {
    /// Returns the name of the result in metrics.
    fn result(&self) -> &'static str {
        match self {
            Self::Busy(_) => "busy",
            Self::Late(_) => "late",
            Self::Broken(..) => "broken",
            Self::Garbage(_) => "garbage",
            Self::Refused(..) => "refused",
            Self::OtherModel(_) => "other_model",
        }
    }
}
