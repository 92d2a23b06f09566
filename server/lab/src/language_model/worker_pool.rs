//! Parallel processing of many items on worker threads. Calls are retried, and processing stops if the endpoint is
//! unusable.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parking_lot::Mutex;
use serde_json::Value;

use super::call_error::CallError;
use super::endpoint::Endpoint;
use super::retry::{CommonPause, RetryPolicy};

/// Number of consecutive items that may fail before processing stops.
const FAILURES_MAX: usize = 5;

/// Pool of workers that call one endpoint.
#[derive(Debug)]
pub struct WorkerPool<'a> {
    /// Endpoint that the workers call.
    pub endpoint: &'a Endpoint,
    /// Retry policy of each call.
    pub retry: RetryPolicy,
    /// Maximum number of calls in progress at once.
    pub workers: usize,
}

/// Handle through which a worker calls the endpoint.
#[derive(Debug)]
pub struct Asker<'a> {
    pool: &'a WorkerPool<'a>,
    shared: &'a Shared,
}

/// Index of an item, and the result for it.
type Made<M> = (usize, Result<M, CallError>);

/// State that the workers share.
#[derive(Debug, Default)]
struct Shared {
    next: AtomicUsize,
    failures: AtomicUsize,
    /// True if the endpoint has answered at least once, even with an error.
    is_there: AtomicBool,
    stop: AtomicBool,
    pause: CommonPause,
    broken: Mutex<Option<CallError>>,
}

impl WorkerPool<'_> {
    /// Calls `one` for each of `things`. Calls `done` with the index and the result of each item, in order of
    /// completion. `done` may stop all processing. Items that are in progress at that moment and then fail are not
    /// reported.
    ///
    /// # Errors
    /// Returns the error that makes the endpoint unusable. Earlier results were passed to `done`.
    pub fn run<T: Sync, M: Send>(
        &self,
        things: &[T],
        one: impl Fn(&T, &Asker<'_>) -> Result<M, CallError> + Sync,
        mut done: impl FnMut(usize, Result<M, CallError>) -> ControlFlow<()>,
    ) -> Result<(), CallError> {
        let shared = Shared::default();
        // A channel without a buffer: a worker continues only after its last result was received.
        let (sender, receiver): (SyncSender<Made<M>>, Receiver<_>) = sync_channel(0);
        thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, things.len().max(1)) {
                let sender = sender.clone();
                let asker = Asker { pool: self, shared: &shared };
                let one = &one;
                scope.spawn(move || asker.work(things, one, &sender));
            }
            drop(sender);
            for (place, made) in receiver {
                if done(place, made).is_break() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let broken = shared.broken.into_inner();
        broken.map_or(Ok(()), Err)
    }
}

impl Asker<'_> {
    /// Returns the model's answer to these messages. Retries on temporary failures.
    ///
    /// # Errors
    /// Returns the last error if no try succeeds.
    pub fn ask(&self, messages: &Value) -> Result<String, CallError> {
        let WorkerPool { endpoint, retry, .. } = self.pool;
        let shared = self.shared;
        let mut tried = 0;
        loop {
            tried += 1;
            shared.pause.wait(&shared.stop);
            let error = match endpoint.complete(messages) {
                Ok(answer) => {
                    shared.is_there.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if !matches!(error, CallError::Unreachable(_)) {
                shared.is_there.store(true, Ordering::Relaxed);
            }
            let stopped = shared.is_stopped();
            match retry.pause(tried, &error).filter(|_| !stopped) {
                Some(pause) => shared.pause.extend(pause),
                None => return Err(error),
            }
        }
    }

    fn work<T, M>(
        &self,
        things: &[T],
        one: &impl Fn(&T, &Self) -> Result<M, CallError>,
        sender: &SyncSender<Made<M>>,
    ) {
        let shared = self.shared;
        while !shared.is_stopped() {
            let place = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else { return };
            let made = one(thing, self);
            match &made {
                Ok(_) => shared.failures.store(0, Ordering::Relaxed),
                // A failure after processing stopped is not reported, so that a later run asks again.
                Err(_) if shared.is_stopped() => return,
                Err(error) => shared.note(error),
            }
            if sender.send((place, made)).is_err() {
                return;
            }
        }
    }
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Stops all processing if no further call can be expected to succeed.
    fn note(&self, error: &CallError) {
        let failures = match error.is_passing() {
            true => self.failures.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        };
        // If the endpoint never answered, the tries for the first item are enough.
        let most = if self.is_there.load(Ordering::Relaxed) { FAILURES_MAX } else { 1 };
        if error.is_final() || failures >= most {
            self.stop.store(true, Ordering::Relaxed);
            let mut broken = self.broken.lock();
            broken.get_or_insert_with(|| error.clone());
        }
    }
}
