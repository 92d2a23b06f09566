//! Joining of callers' short requests to one worker. Requests that come while others are under way go to the worker as
//! one, so that callers who have one text each don't cost a call each. No timer holds a text back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use toolgate_encoder::estimated_tokens;
use toolgate_encoder_client::{Code, EmbedAnswer, Error as ClientError, TraceContext};

use super::member::{Call, Member};
use crate::encoder::{Flow, WorkerMetrics};

/// Maximum joined requests under way at a worker. Fewer callers than these are not joined. It is what workers are
/// scaled by (`toolgate_embed_queue_depth`), so that one server alone can show that it wants another worker.
const UNDER_WAY_MAX: usize = 8;

/// Maximum texts in one request.
const TEXTS_MAX: usize = 64;

/// Maximum tokens, estimated, in one request of several callers: 64 intents of people. A device takes about as long for
/// them as it takes to start a batch. More would make short texts wait for long ones, and save little.
const TOKENS_MAX: u64 = 2_048;

/// Maximum tokens that count of one text. Models for short texts read no more.
const TOKENS_OF_A_TEXT_MAX: u64 = 512;

/// Maximum requests that wait at a worker, those of callers who have left among them.
const WAITING_MAX: usize = 1_024;

/// Texts of one caller. They go to the worker in one request.
pub(super) struct ShortRequest {
    pub(super) texts: Vec<String>,
    pub(super) flow: Flow,
    /// Time that the caller waits at most.
    pub(super) within: Duration,
    pub(super) trace: Option<TraceContext>,
}

/// Reason why a short request has no answer.
pub(super) enum NotJoined {
    /// Too many wait.
    Full,
    /// The caller's time ended first.
    Late,
    /// The request that had the texts failed.
    Failed(ClientError),
}

/// Short request that waits for its answer.
pub(super) struct Pending {
    texts: Vec<String>,
    flow: Flow,
    /// Tokens of the texts, estimated.
    tokens: u64,
    wait: Arc<Wait>,
    until: Instant,
    trace: Option<TraceContext>,
    caller: oneshot::Sender<Result<EmbedAnswer, ClientError>>,
}

/// Wait of a short request for its turn. It ends once: when the request is sent, or when its caller leaves.
struct Wait {
    since: Instant,
    is_over: AtomicBool,
}

impl Wait {
    fn end(&self, end: &'static str, metrics: &WorkerMetrics) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            metrics.waited(end, self.since.elapsed().as_secs_f64());
        }
    }
}

/// Guard of a caller that waits. Dropping it ends the wait, if the request was not sent.
struct Waiter<'a> {
    wait: Arc<Wait>,
    metrics: &'a WorkerMetrics,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.wait.end("left", self.metrics);
    }
}

/// Error of a queue in which too many requests wait.
struct Full;

/// Requests that wait to be sent to one worker. Flows take turns, so that a tenant with many requests does not hold up the
/// others.
#[derive(Default)]
pub(super) struct Queue {
    /// Flows that have requests, the next one first.
    turns: VecDeque<Flow>,
    pending: HashMap<Flow, VecDeque<Pending>>,
    waiting: usize,
    under_way: usize,
}

/// Place among the requests under way. Dropping it gives the place up.
struct Place {
    member: Arc<Member>,
    is_given_up: bool,
}

impl Member {
    /// Embeds the texts of a short request, together with those of others that wait. The worker's health hears of each
    /// request that fails, not of each caller. Needs a tokio runtime.
    pub(super) async fn join(
        self: &Arc<Self>,
        request: ShortRequest,
    ) -> Result<EmbedAnswer, NotJoined> {
        let ShortRequest { texts, flow, within, trace } = request;
        let (caller, answer) = oneshot::channel();
        let since = Instant::now();
        let wait = Arc::new(Wait { since, is_over: AtomicBool::new(false) });
        let tokens = tokens_of(&texts);
        let pending = Pending {
            texts,
            flow,
            tokens,
            wait: Arc::clone(&wait),
            until: since + within,
            trace,
            caller,
        };
        let place = self.queue.lock().push(pending).map_err(|Full| NotJoined::Full)?;
        let _waiter = Waiter { wait, metrics: &self.metrics };
        if place {
            let place = Place { member: Arc::clone(self), is_given_up: false };
            tokio::spawn(place.send_waiting());
        }
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => answer.map_err(NotJoined::Failed),
            _ => Err(NotJoined::Late),
        }
    }

    /// Sends requests as one, and answers their callers. If the worker refuses it as invalid, each half is sent by itself,
    /// so that a text that the worker refuses fails no other.
    async fn send(&self, joined: Vec<Pending>) {
        self.metrics.joined(joined.len());
        for pending in &joined {
            pending.wait.end("sent", &self.metrics);
        }
        let mut parts = vec![joined];
        while let Some(mut part) = parts.pop() {
            match self.send_once(&mut part).await {
                None => {}
                Some(Ok(EmbedAnswer { embeddings, outstanding_tokens, callers })) => {
                    let mut rest = embeddings.into_iter();
                    for pending in part {
                        let embeddings = rest.by_ref().take(pending.texts.len()).collect();
                        let own = EmbedAnswer { embeddings, outstanding_tokens, callers };
                        drop(pending.caller.send(Ok(own)));
                    }
                }
                Some(Err(error)) if part.len() > 1 && is_refusal(&error) => {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                }
                Some(Err(error)) => {
                    for pending in part {
                        drop(pending.caller.send(Err(error.clone())));
                    }
                }
            }
        }
    }

    /// Makes one request of all texts, and notes its outcome once, however many callers it has. It has the time of the
    /// caller who waits longest. It is cancelled once all of them have left, and returns `None`.
    async fn send_once(&self, joined: &mut [Pending]) -> Option<Result<EmbedAnswer, ClientError>> {
        let sent = Instant::now();
        let until = joined.iter().map(|pending| pending.until).max()?;
        let within = until.saturating_duration_since(sent);
        let call = call_of(joined, within);
        let answer = tokio::select! {
            answer = self.call(call) => answer,
            () = all_left(joined) => {
                let now = Instant::now();
                // Those whose time is over left because the worker was late.
                if joined.iter().any(|pending| pending.until <= now) {
                    self.note_late(now - sent);
                }
                return None;
            }
        };
        if let Err(error) = &answer {
            self.note_failure(error, within);
        }
        Some(answer)
    }
}

/// Returns the call of joined requests. It is in the trace of one that is sampled, if there is one. Texts of several flows are a
/// flow by themselves, since they took turns here.
fn call_of(joined: &[Pending], within: Duration) -> Call {
    let texts = joined.iter().flat_map(|pending| &pending.texts).cloned().collect();
    let first = joined.first().map_or(Flow::ALONE, |pending| pending.flow);
    let is_one_flow = joined.iter().all(|pending| pending.flow == first);
    let flow = if is_one_flow { first } else { Flow::new(fastrand::u64(1..1 << 63)) };
    let traces = || joined.iter().filter_map(|pending| pending.trace.as_ref());
    let trace = traces().find(|trace| trace.is_sampled()).or_else(|| traces().next());
    Call { texts, flow, within, trace: trace.cloned(), over: None }
}

impl Queue {
    /// Adds a request, and returns true if there is a place for it, which is taken.
    ///
    /// # Errors
    /// Too many wait; the request is dropped.
    fn push(&mut self, pending: Pending) -> Result<bool, Full> {
        if self.waiting >= WAITING_MAX {
            self.forget_left();
        }
        if self.waiting >= WAITING_MAX {
            return Err(Full);
        }
        let flow = pending.flow;
        let of_flow = self.pending.entry(flow).or_default();
        if of_flow.is_empty() {
            self.turns.push_back(flow);
        }
        of_flow.push_back(pending);
        self.waiting += 1;
        let has_place = self.under_way < UNDER_WAY_MAX;
        self.under_way += usize::from(has_place);
        Ok(has_place)
    }

    /// Drops the requests of callers who have left.
    fn forget_left(&mut self) {
        for of_flow in self.pending.values_mut() {
            of_flow.retain(|pending| !pending.caller.is_closed());
        }
        self.pending.retain(|_, of_flow| !of_flow.is_empty());
        self.turns.retain(|flow| self.pending.contains_key(flow));
        self.waiting = self.pending.values().map(VecDeque::len).sum();
    }

    /// Takes the requests of the next joined one: one of each flow in turn, up to [`TEXTS_MAX`] texts and [`TOKENS_MAX`]
    /// tokens. One request with more tokens goes alone. Those whose caller has left are dropped.
    fn take(&mut self) -> Vec<Pending> {
        let mut taken: Vec<Pending> = Vec::new();
        let mut texts = 0;
        let mut tokens = 0;
        while let Some(flow) = self.turns.pop_front() {
            let Some(of_flow) = self.pending.get_mut(&flow) else { continue };
            while of_flow.front().is_some_and(|pending| pending.caller.is_closed()) {
                of_flow.pop_front();
                self.waiting -= 1;
            }
            let is_too_much = |next: &Pending| {
                texts + next.texts.len() > TEXTS_MAX || tokens + next.tokens > TOKENS_MAX
            };
            if !taken.is_empty() && of_flow.front().is_some_and(is_too_much) {
                self.turns.push_front(flow);
                break;
            }
            if let Some(pending) = of_flow.pop_front() {
                self.waiting -= 1;
                texts += pending.texts.len();
                tokens += pending.tokens;
                taken.push(pending);
            }
            if of_flow.is_empty() {
                self.pending.remove(&flow);
            } else {
                self.turns.push_back(flow);
            }
        }
        taken
    }
}

impl Place {
    /// Sends one request after the other, as long as something waits.
    async fn send_waiting(mut self) {
        while let Some(joined) = self.take() {
            self.member.send(joined).await;
        }
    }

    /// Takes what waits; `None` if nothing does, and the place is given up. Both happen under one lock: what comes later
    /// finds a free place.
    fn take(&mut self) -> Option<Vec<Pending>> {
        let mut queue = self.member.queue.lock();
        let taken = queue.take();
        if taken.is_empty() {
            queue.under_way -= 1;
            self.is_given_up = true;
            return None;
        }
        Some(taken)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_given_up {
            self.member.queue.lock().under_way -= 1;
        }
    }
}

/// Returns the tokens that a model reads of texts, estimated.
fn tokens_of(texts: &[String]) -> u64 {
    let of_one =
        |text: &String| estimated_tokens(std::slice::from_ref(text)).min(TOKENS_OF_A_TEXT_MAX);
    texts.iter().map(of_one).sum()
}

/// Waits until no caller waits for an answer.
async fn all_left(joined: &mut [Pending]) {
    for pending in joined {
        pending.caller.closed().await;
    }
}

/// Returns true if the worker refused a text.
fn is_refusal(error: &ClientError) -> bool {
    matches!(error.code(), Some(Code::InvalidArgument | Code::OutOfRange))
}
