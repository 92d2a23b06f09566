//! Asks for many summaries at once, each call on a thread of its own, patiently, and stops when the endpoint is
//! of no use.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::answer;
use super::call_error::CallError;
use super::endpoint::Endpoint;
use super::patience::{CommonPause, Patience};
use super::prompt;
use crate::lint::tool::Tool;

/// Tools in a row whose calls all failed, after which no further one is tried.
const FAILURES_MAX: usize = 5;

/// What became of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// The model wrote this.
    Written(String),
    /// What it wrote is not taken, for this reason.
    Unfit(String),
    /// No answer could be had, for this reason.
    Unanswered(String),
}

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

/// What the workers share.
struct Shared<'a> {
    next: AtomicUsize,
    failures: AtomicUsize,
    /// Whether the endpoint is there at all.
    is_there: AtomicBool,
    stop: AtomicBool,
    pause: CommonPause,
    broken: Mutex<Option<CallError>>,
    tools: &'a [&'a Tool<'a>],
}

impl Crew<'_> {
    /// Asks for each tool's summary. `done` hears of each by its place in `tools`, in the order in which they
    /// come, and may stop it all.
    ///
    /// # Errors
    /// Why the endpoint is of no use; what came before was told to `done`.
    pub fn run(
        &self,
        tools: &[&Tool<'_>],
        mut done: impl FnMut(usize, Rewritten) -> ControlFlow<()>,
    ) -> Result<(), CallError> {
        let shared = Shared {
            next: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
            is_there: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            pause: CommonPause::default(),
            broken: Mutex::new(None),
            tools,
        };
        // Without room: a worker goes on only when the one before was heard.
        let (sender, receiver): (SyncSender<(usize, Rewritten)>, Receiver<_>) = sync_channel(0);
        thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, tools.len().max(1)) {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || self.work(shared, &sender));
            }
            drop(sender);
            for (place, rewritten) in receiver {
                if done(place, rewritten).is_break() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let broken = shared.broken.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        broken.map_or(Ok(()), Err)
    }

    fn work(&self, shared: &Shared<'_>, sender: &SyncSender<(usize, Rewritten)>) {
        while !shared.stop.load(Ordering::Relaxed) {
            let place = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(tool) = shared.tools.get(place) else { return };
            let rewritten = match self.ask(shared, tool) {
                Ok(answer) => {
                    shared.failures.store(0, Ordering::Relaxed);
                    answer::summary(tool, &answer).map_or_else(Rewritten::Unfit, Rewritten::Written)
                }
                // The calls that were under way when it all ended are asked again another time.
                Err(_) if shared.stop.load(Ordering::Relaxed) => return,
                Err(error) => {
                    let why = Rewritten::Unanswered(error.to_string());
                    shared.note(error);
                    why
                }
            };
            if sender.send((place, rewritten)).is_err() {
                return;
            }
        }
    }

    fn ask(&self, shared: &Shared<'_>, tool: &Tool<'_>) -> Result<String, CallError> {
        let messages = prompt::messages(tool);
        let mut tried = 0;
        loop {
            tried += 1;
            shared.pause.sit_out(&shared.stop);
            let error = match self.endpoint.complete(&messages) {
                Ok(answer) => {
                    shared.is_there.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if !matches!(error, CallError::Unreachable(_)) {
                shared.is_there.store(true, Ordering::Relaxed);
            }
            let stopped = shared.stop.load(Ordering::Relaxed);
            match self.patience.pause(tried, &error).filter(|_| !stopped) {
                Some(pause) => shared.pause.extend(pause),
                None => return Err(error),
            }
        }
    }
}

impl Shared<'_> {
    /// Stops it all when no further call can be expected to succeed.
    fn note(&self, error: CallError) {
        let failures = match error.is_passing() {
            true => self.failures.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        };
        // Nobody home: the first tool's tries were enough.
        let most = if self.is_there.load(Ordering::Relaxed) { FAILURES_MAX } else { 1 };
        if error.is_final() || failures >= most {
            self.stop.store(true, Ordering::Relaxed);
            let mut broken = self.broken.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            broken.get_or_insert(error);
        }
    }
}
