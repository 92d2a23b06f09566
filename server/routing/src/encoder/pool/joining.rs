//! Joining of intents: while enough calls of a flow are under way, further ones wait, and those that have come when one
//! of them ends go to a worker together. There is no timer: a call that finds a place goes at once.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use super::attempt::{Ask, TEXTS_IN_TIME};
use super::member::Tier;
use super::{CHUNK, Inner, REQUESTS_MAX, REQUESTS_PER_WORKER};
use crate::encoder::{Embedded, Flow};
use toolgate_core::error::Error;

/// Maximum calls of one flow that wait. Further ones go by themselves.
const WAITING_MAX: usize = 4_096;

/// Bit of a flow's number that is set where nobody waits for the answer, as for a registration's.
const NOBODY_WAITS: u64 = 1 << 63;

type Answer = Result<Vec<Embedded>, Error>;

/// Bounds of joining, which follow the workers in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Calls of one flow that may be under way; at least 1.
    pub(super) calls: usize,
    /// Texts of one call. A CPU gains nothing from more than it is given time for at once.
    pub(super) texts: usize,
}

impl Bounds {
    /// Returns the bounds for the best tier and the number of its workers. Each has one more call than it works on.
    pub(super) fn of(tier: Tier, workers: usize) -> Self {
        let calls = (workers * REQUESTS_PER_WORKER).clamp(1, REQUESTS_MAX);
        let texts = match tier {
            Tier::Gpu => CHUNK,
            Tier::Cpu => TEXTS_IN_TIME,
        };
        Self { calls, texts }
    }
}

/// Returns true if calls with this many texts of `flow` may be joined with others.
pub(super) fn may_join(texts: usize, flow: Flow) -> bool {
    flow != Flow::ALONE && flow.number() & NOBODY_WAITS == 0 && texts <= TEXTS_IN_TIME
}

/// Calls of all flows.
#[derive(Default)]
pub(super) struct Joining {
    flows: Mutex<HashMap<Flow, FlowCalls>>,
}

#[derive(Default)]
struct FlowCalls {
    under_way: usize,
    waiting: VecDeque<WaitingCall>,
}

/// Call that waits for a place, and its caller.
struct WaitingCall {
    texts: Vec<String>,
    deadline: Option<Instant>,
    answer: oneshot::Sender<Answer>,
    span: Span,
}

/// What becomes of a call that comes.
enum Entry {
    /// It has a place, which it must leave.
    Now(Vec<String>),
    /// It is joined with others; the answer comes here.
    Later(oneshot::Receiver<Answer>),
    /// Too many wait: it goes without a place.
    Alone(Vec<String>),
}

/// Place of a call under way. Dropping it gives the place to calls that wait.
struct Place {
    inner: Arc<Inner>,
    flow: Flow,
}

impl Joining {
    fn enter(
        &self,
        texts: Vec<String>,
        flow: Flow,
        deadline: Option<Instant>,
        bounds: Bounds,
    ) -> Entry {
        let mut flows = self.flows.lock();
        let calls = flows.entry(flow).or_default();
        if calls.under_way < bounds.calls {
            calls.under_way += 1;
            return Entry::Now(texts);
        }
        if calls.waiting.len() >= WAITING_MAX {
            return Entry::Alone(texts);
        }
        let (answer, receiver) = oneshot::channel();
        calls.waiting.push_back(WaitingCall { texts, deadline, answer, span: Span::current() });
        Entry::Later(receiver)
    }

    /// Returns the calls that take over a place that is left. If there are none, the place is gone.
    fn leave(&self, flow: Flow, bounds: Bounds) -> Vec<WaitingCall> {
        let mut flows = self.flows.lock();
        let Some(calls) = flows.get_mut(&flow) else { return Vec::new() };
        // With fewer workers than before there are fewer places; the last one is always kept.
        let is_kept = calls.under_way <= bounds.calls.max(1);
        let joined = if is_kept { calls.take(bounds.texts) } else { Vec::new() };
        if joined.is_empty() {
            calls.under_way = calls.under_way.saturating_sub(1);
            if calls.under_way == 0 {
                flows.remove(&flow);
            }
        }
        joined
    }
}

impl FlowCalls {
    /// Takes the first waiting calls, up to `texts` texts, without those whose callers have left.
    fn take(&mut self, texts: usize) -> Vec<WaitingCall> {
        let mut taken: Vec<WaitingCall> = Vec::new();
        let mut count = 0;
        while let Some(call) = self.waiting.pop_front() {
            if call.answer.is_closed() {
                continue;
            }
            count += call.texts.len();
            if count > texts && !taken.is_empty() {
                self.waiting.push_front(call);
                break;
            }
            taken.push(call);
        }
        taken
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Without a runtime the process ends, and whoever waits ends with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let joined = self.inner.joining.leave(self.flow, self.inner.bounds());
        if let Some(first) = joined.first() {
            let span = first.span.clone();
            let place = Self { inner: Arc::clone(&self.inner), flow: self.flow };
            runtime.spawn(answer_all(place, joined).instrument(span));
        }
    }
}

impl Inner {
    /// Returns the bounds of joining. Without workers nothing is joined, and they are only for calls that are under way.
    fn bounds(&self) -> Bounds {
        let (tier, workers) = self.roster.best_tier().unwrap_or((Tier::Cpu, 1));
        Bounds::of(tier, workers)
    }
}

/// Embeds the texts of one call, together with others' that wait if many are under way.
pub(super) async fn embed(
    inner: &Arc<Inner>,
    texts: Vec<String>,
    flow: Flow,
    deadline: Option<Instant>,
) -> Answer {
    // This process joins what waits for its device by itself.
    let Some((tier, workers)) = inner.roster.best_tier() else {
        return inner.answer(&Ask::new(texts, flow, deadline)).await;
    };
    match inner.joining.enter(texts, flow, deadline, Bounds::of(tier, workers)) {
        Entry::Now(texts) => {
            let _place = Place { inner: Arc::clone(inner), flow };
            inner.answer(&Ask::new(texts, flow, deadline)).await
        }
        Entry::Alone(texts) => inner.answer(&Ask::new(texts, flow, deadline)).await,
        Entry::Later(answer) => {
            let answer = match deadline {
                None => answer.await,
                Some(at) => tokio::time::timeout_at(at.into(), answer)
                    .await
                    .map_err(|_elapsed| Error::DeadlineExceeded)?,
            };
            answer.unwrap_or_else(|_| Err(Error::EncoderUnavailable("the call ended".into())))
        }
    }
}

/// Embeds the texts of calls that have waited as one request, until all callers have left.
async fn answer_all(place: Place, mut calls: Vec<WaitingCall>) {
    let texts = calls.iter().flat_map(|call| call.texts.iter().cloned()).collect();
    // A caller with less time leaves by itself.
    let deadlines: Option<Vec<Instant>> = calls.iter().map(|call| call.deadline).collect();
    let deadline = deadlines.and_then(|all| all.into_iter().max());
    let ask = Ask::new(texts, place.flow, deadline).joined(calls.len());
    let answer = tokio::select! {
        answer = place.inner.answer(&ask) => answer,
        () = until_all_left(&mut calls) => return,
    };
    hand_out(answer, calls);
}

async fn until_all_left(calls: &mut [WaitingCall]) {
    for call in calls {
        call.answer.closed().await;
    }
}

/// Gives each caller its embeddings, or each the error.
fn hand_out(answer: Answer, calls: Vec<WaitingCall>) {
    let mut embedded = match answer {
        Ok(embedded) => embedded.into_iter(),
        Err(error) => {
            for call in calls {
                // A caller that has left needs none.
                drop(call.answer.send(Err(alike(&error))));
            }
            return;
        }
    };
    for call in calls {
        let its = embedded.by_ref().take(call.texts.len()).collect();
        drop(call.answer.send(Ok(its)));
    }
}

/// Returns an error of the same meaning. What an encoder fails with is one of these two.
fn alike(error: &Error) -> Error {
    match error {
        Error::DeadlineExceeded => Error::DeadlineExceeded,
        other => Error::EncoderUnavailable(other.to_string().into()),
    }
}
