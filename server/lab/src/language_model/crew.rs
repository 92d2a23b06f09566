//! Asks about many things at once, each on a thread of its own, patiently, and stops when the endpoint is of no use.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::Value;

use super::call_error::CallError;
use super::endpoint::Endpoint;
use super::patience::{CommonPause, Patience};

/// Things in a row about which all calls failed, after which no further one is tried.
const FAILURES_MAX: usize = 5;

/// Those who ask.
#[derive(Debug)]
pub struct Crew<'a> {
    /// Whom they ask.
    pub endpoint: &'a Endpoint,
    /// How patiently.
    pub patience: Patience,
    /// How many calls are under way at once, at most.
    pub workers: usize,
}

/// What somebody of a crew asks through.
#[derive(Debug)]
pub struct Asker<'a> {
    crew: &'a Crew<'a>,
    shared: &'a Shared,
}

/// What was made of a thing, and its place.
type Made<M> = (usize, Result<M, CallError>);

/// What the workers share.
#[derive(Debug, Default)]
struct Shared {
    next: AtomicUsize,
    failures: AtomicUsize,
    /// Whether the endpoint is there at all.
    is_there: AtomicBool,
    stop: AtomicBool,
    pause: CommonPause,
    broken: Mutex<Option<CallError>>,
}

impl Crew<'_> {
    /// Does `one` for each of `things`. `done` hears of each by its place, in the order in which they come, and may
    /// stop it all; what was under way when it all ended is not told.
    ///
    /// # Errors
    /// Why the endpoint is of no use; what came before was told to `done`.
    pub fn run<T: Sync, M: Send>(
        &self,
        things: &[T],
        one: impl Fn(&T, &Asker<'_>) -> Result<M, CallError> + Sync,
        mut done: impl FnMut(usize, Result<M, CallError>) -> ControlFlow<()>,
    ) -> Result<(), CallError> {
        let shared = Shared::default();
        // Without room: a worker goes on only when the one before was heard.
        let (sender, receiver): (SyncSender<Made<M>>, Receiver<_>) = sync_channel(0);
        thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, things.len().max(1)) {
                let sender = sender.clone();
                let asker = Asker { crew: self, shared: &shared };
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
        let broken = shared.broken.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        broken.map_or(Ok(()), Err)
    }
}

impl Asker<'_> {
    /// The model's answer to these messages, for which a passing fault is sat out.
    ///
    /// # Errors
    /// Why there is none.
    pub fn ask(&self, messages: &Value) -> Result<String, CallError> {
        let Crew { endpoint, patience, .. } = self.crew;
        let shared = self.shared;
        let mut tried = 0;
        loop {
            tried += 1;
            shared.pause.sit_out(&shared.stop);
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
            match patience.pause(tried, &error).filter(|_| !stopped) {
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
                // The calls that were under way when it all ended are asked again another time.
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

    /// Stops it all when no further call can be expected to succeed.
    fn note(&self, error: &CallError) {
        let failures = match error.is_passing() {
            true => self.failures.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        };
        // Nobody home: the tries about the first thing were enough.
        let most = if self.is_there.load(Ordering::Relaxed) { FAILURES_MAX } else { 1 };
        if error.is_final() || failures >= most {
            self.stop.store(true, Ordering::Relaxed);
            let mut broken = self.broken.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            broken.get_or_insert_with(|| error.clone());
        }
    }
}
