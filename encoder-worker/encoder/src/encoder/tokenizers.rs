//! Threads that turn texts into tokens. There are few, by the cores, and few jobs wait for them.

use std::ops::{Range, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use super::batcher::Event;
use super::device_thread::panic_text;
use super::formed::RequestId;
use super::stats::Counters;
use crate::giving_way::{Behind, give_way};
use crate::load_error::LoadError;
use crate::tokenize::{TextTokenizer, Tokens};

/// Least and most threads.
const THREADS: RangeInclusive<usize> = 1..=8;

/// Jobs that may wait for each thread.
const JOBS_OF_A_THREAD: usize = 16;

/// Consecutive texts of a request.
pub(super) struct Job {
    pub(super) request: RequestId,
    pub(super) texts: Arc<[String]>,
    pub(super) range: Range<usize>,
}

/// Job that is done. A text that could not be tokenized has the cause.
pub(super) struct Tokenized {
    pub(super) request: RequestId,
    /// Index of the first text.
    pub(super) first: usize,
    pub(super) tokens: Vec<Result<Tokens, String>>,
}

/// Sender of jobs to the threads. Dropping it ends them.
pub(super) struct Tokenizers {
    jobs: SyncSender<Job>,
    tokenizer: Arc<TextTokenizer>,
    counters: Arc<Counters>,
}

impl Tokenizers {
    /// Starts the threads, half as many as `cores` within the bounds. They send what they have done to `events`.
    pub(super) fn start(
        tokenizer: TextTokenizer,
        cores: usize,
        events: &Sender<Event>,
        counters: &Arc<Counters>,
    ) -> Result<Self, LoadError> {
        let threads = threads_by(cores);
        let tokenizer = Arc::new(tokenizer);
        let (jobs, waiting) = sync_channel(threads * JOBS_OF_A_THREAD);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let tokenizer = Arc::clone(&tokenizer);
            let waiting = Arc::clone(&waiting);
            let events = events.clone();
            let counters = Arc::clone(counters);
            thread::Builder::new()
                .name("tokenizer".into())
                .spawn(move || {
                    give_way(Behind::Answers);
                    work(&tokenizer, &waiting, &events, &counters);
                })
                .map_err(|error| LoadError::Threads(error.to_string()))?;
        }
        Ok(Self { jobs, tokenizer, counters: Arc::clone(counters) })
    }

    /// Gives a job to the threads; returns false if too many wait.
    pub(super) fn try_send(&self, job: Job) -> bool {
        self.jobs.try_send(job).is_ok()
    }

    /// Does a job on the calling thread.
    pub(super) fn do_here(&self, job: &Job) -> Tokenized {
        tokenize(&self.tokenizer, job, &self.counters)
    }
}

fn threads_by(cores: usize) -> usize {
    (cores / 2).clamp(*THREADS.start(), *THREADS.end())
}

/// Does jobs until no more can come.
fn work(
    tokenizer: &TextTokenizer,
    waiting: &Mutex<Receiver<Job>>,
    events: &Sender<Event>,
    counters: &Counters,
) {
    loop {
        // One thread at a time waits for a job; the others wait for it.
        let job = waiting.lock().recv();
        let Ok(job) = job else { return };
        if events.send(Event::Tokenized(tokenize(tokenizer, &job, counters))).is_err() {
            return;
        }
    }
}

fn tokenize(tokenizer: &TextTokenizer, job: &Job, counters: &Counters) -> Tokenized {
    let started = Instant::now();
    let encode = |text: &String| {
        // A text that the tokenizer panics on fails its own request.
        match catch_unwind(AssertUnwindSafe(|| tokenizer.encode(text))) {
            Ok(tokens) => tokens.map_err(|error| error.to_string()),
            Err(panic) => Err(panic_text(panic.as_ref())),
        }
    };
    let tokens = job.texts[job.range.clone()].iter().map(encode).collect();
    counters.add_tokenizing(started.elapsed());
    Tokenized { request: job.request, first: job.range.start, tokens }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_cores_tokenize_within_bounds() {
        for (cores, threads) in [(1, 1), (2, 1), (8, 4), (128, 8)] {
            assert_eq!(threads_by(cores), threads, "{cores} cores");
        }
    }
}
