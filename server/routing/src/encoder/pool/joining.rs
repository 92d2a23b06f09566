//! Joining of short requests to one worker. What comes while its requests are under way goes to it as one request, so
//! that a GPU gets batches from callers who have one text each. No timer holds a text back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use toolgate_encoder_client::{
    Code, EmbedAnswer, EmbedOptions, EncoderClient, Error as ClientError, TraceContext,
};

use crate::encoder::{EncoderMetrics, Flow};

/// Maximum requests under way: one that the device runs, and one that waits for it at the worker.
const UNDER_WAY_MAX: usize = 2;

/// Maximum texts in one request.
const TEXTS_MAX: usize = 64;

/// Result of a request to a worker.
type Answer = Result<EmbedAnswer, ClientError>;

/// Texts of one caller. They go to the worker in one request.
pub(super) struct ShortRequest {
    pub(super) texts: Vec<String>,
    pub(super) flow: Flow,
    /// Time that the caller waits at most.
    pub(super) within: Duration,
    pub(super) trace: Option<TraceContext>,
}

/// Short request that waits for its answer.
struct Pending {
    texts: Vec<String>,
    flow: Flow,
    until: Instant,
    trace: Option<TraceContext>,
    caller: oneshot::Sender<Answer>,
}

/// Joiner of the requests to one worker.
pub(super) struct Joiner {
    client: EncoderClient,
    fingerprint: String,
    queue: Mutex<Queue>,
    metrics: EncoderMetrics,
}

/// Requests that wait to be sent. Flows take turns, so that a tenant with many requests does not hold up the others.
#[derive(Default)]
struct Queue {
    /// Flows that have requests, the next one first.
    turns: VecDeque<Flow>,
    pending: HashMap<Flow, VecDeque<Pending>>,
    under_way: usize,
}

/// Place among the requests under way. Dropping it gives the place up, also if the task that has it panics.
struct Place<'a> {
    joiner: &'a Joiner,
    is_given_up: bool,
}

impl Joiner {
    /// Creates the joiner of a worker that must have the model with this fingerprint.
    pub(super) fn new(client: EncoderClient, fingerprint: &str, metrics: EncoderMetrics) -> Self {
        let fingerprint = fingerprint.to_owned();
        Self { client, fingerprint, queue: Mutex::default(), metrics }
    }

    /// Embeds the texts of a short request, together with those of others that wait. Needs a tokio runtime.
    ///
    /// # Errors
    /// The request that had the texts failed, or the caller's time is over.
    pub(super) async fn embed(self: &Arc<Self>, request: ShortRequest) -> Answer {
        let ShortRequest { texts, flow, within, trace } = request;
        let (caller, answer) = oneshot::channel();
        self.enqueue(Pending { texts, flow, until: Instant::now() + within, trace, caller });
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ClientError::Unreachable {
                address: self.client.address().to_owned(),
                cause: "the request was given up".to_owned(),
            }),
            Err(_elapsed) => Err(ClientError::Deadline {
                rpc: "Embed",
                address: self.client.address().to_owned(),
                deadline: within,
            }),
        }
    }

    fn enqueue(self: &Arc<Self>, pending: Pending) {
        let has_place = {
            let mut queue = self.queue.lock();
            queue.push(pending);
            let has_place = queue.under_way < UNDER_WAY_MAX;
            queue.under_way += usize::from(has_place);
            has_place
        };
        if has_place {
            let joiner = Arc::clone(self);
            tokio::spawn(async move { joiner.send_waiting().await });
        }
    }

    /// Sends one request after the other, as long as something waits.
    async fn send_waiting(self: &Arc<Self>) {
        let mut place = Place { joiner: self, is_given_up: false };
        while let Some(joined) = place.take() {
            self.send(joined).await;
        }
    }

    /// Sends requests as one, and answers their callers. It is cancelled once all of them have left.
    async fn send(self: &Arc<Self>, mut joined: Vec<Pending>) {
        self.metrics.joined(joined.len());
        let asking = self.ask(&joined);
        let answer = tokio::select! {
            answer = asking => answer,
            () = all_left(&mut joined) => return,
        };
        match answer {
            Ok(EmbedAnswer { embeddings, outstanding_tokens }) => {
                let mut rest = embeddings.into_iter();
                for pending in joined {
                    let embeddings = rest.by_ref().take(pending.texts.len()).collect();
                    drop(pending.caller.send(Ok(EmbedAnswer { embeddings, outstanding_tokens })));
                }
            }
            // One text that the worker refuses is not to fail the others.
            Err(error) if joined.len() > 1 && is_refusal(&error) => {
                let mut alone = JoinSet::new();
                for pending in joined {
                    let joiner = Arc::clone(self);
                    alone.spawn(async move { joiner.send_alone(pending).await });
                }
                alone.join_all().await;
            }
            Err(error) => {
                for pending in joined {
                    drop(pending.caller.send(Err(error.clone())));
                }
            }
        }
    }

    async fn send_alone(&self, mut pending: Pending) {
        let asking = self.ask(std::slice::from_ref(&pending));
        tokio::select! {
            answer = asking => drop(pending.caller.send(answer)),
            () = pending.caller.closed() => {}
        }
    }

    /// Makes one request of all texts. It has the time of the caller who waits longest, and is in the trace of the first
    /// one that has a trace. Texts of several flows are a flow by themselves, since they took turns here.
    fn ask(&self, joined: &[Pending]) -> impl Future<Output = Answer> + use<> {
        let texts = joined.iter().flat_map(|pending| &pending.texts).cloned().collect();
        let first = joined.first().map_or(Flow::ALONE, |pending| pending.flow);
        let is_one_flow = joined.iter().all(|pending| pending.flow == first);
        let flow = if is_one_flow { first } else { Flow::ALONE };
        let until = joined.iter().map(|pending| pending.until).max();
        let now = Instant::now();
        let within = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let trace = joined.iter().find_map(|pending| pending.trace.clone());
        let client = self.client.clone();
        let fingerprint = self.fingerprint.clone();
        async move {
            let options = EmbedOptions { flow: flow.number(), trace: trace.as_ref() };
            client.embed(texts, &fingerprint, within, options).await
        }
    }
}

impl Queue {
    fn push(&mut self, pending: Pending) {
        let flow = pending.flow;
        let of_flow = self.pending.entry(flow).or_default();
        if of_flow.is_empty() {
            self.turns.push_back(flow);
        }
        of_flow.push_back(pending);
    }

    /// Takes the requests of the next joined one: one of each flow in turn, up to [`TEXTS_MAX`] texts. Those whose caller
    /// has left are dropped.
    fn take(&mut self) -> Vec<Pending> {
        let mut taken = Vec::new();
        let mut texts = 0;
        while let Some(flow) = self.turns.pop_front() {
            let Some(of_flow) = self.pending.get_mut(&flow) else { continue };
            while of_flow.front().is_some_and(|pending| pending.caller.is_closed()) {
                of_flow.pop_front();
            }
            if of_flow.front().is_some_and(|next| texts + next.texts.len() > TEXTS_MAX) {
                self.turns.push_front(flow);
                break;
            }
            if let Some(pending) = of_flow.pop_front() {
                texts += pending.texts.len();
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

impl Place<'_> {
    /// Takes what waits; `None` if nothing does, and the place is given up. Both happen under one lock: what comes later
    /// finds a free place.
    fn take(&mut self) -> Option<Vec<Pending>> {
        let mut queue = self.joiner.queue.lock();
        let taken = queue.take();
        if taken.is_empty() {
            queue.under_way -= 1;
            self.is_given_up = true;
            return None;
        }
        Some(taken)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_given_up {
            self.joiner.queue.lock().under_way -= 1;
        }
    }
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
