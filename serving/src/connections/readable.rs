//! When bytes could be read, which is before they are: while a process is busy, a connection waits for its turn.
//!
//! A wakeup says when. It comes when the runtime asks the kernel, so that the time before that, for which bytes lay in the
//! kernel's socket while every thread was busy, counts for nothing. And a wakeup may be for nothing: the runtime wakes a
//! task that it made pause although there was something to read, or none any more. One after which nothing is read dates
//! nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

/// Looks at the wakeups of one connection's reading.
#[derive(Debug, Default)]
pub(super) struct Readable {
    woken: Arc<Woken>,
    waker: Option<Waker>,
    /// The wakeup after which it is being read.
    candidate: Option<Instant>,
    /// Since when there are bytes, while they are being read.
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct Woken(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reader: Option<Waker>,
    /// When the reader was woken, until it reads.
    at: Option<Instant>,
}

impl Readable {
    /// Returns what to read with: it wakes whoever reads, and notes when.
    pub(super) fn waker(&mut self, cx: &Context<'_>) -> Waker {
        let mut state = self.woken.state();
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        let woken = state.at.take();
        drop(state);
        self.candidate = self.candidate.or(woken);
        self.waker.get_or_insert_with(|| Waker::from(Arc::clone(&self.woken))).clone()
    }

    /// Returns since when the bytes that were just read could be read.
    pub(super) fn has_read(&mut self) -> Instant {
        let woken = self.candidate.take();
        *self.since.get_or_insert_with(|| woken.unwrap_or_else(Instant::now))
    }

    /// There is nothing more to read for now. What wakes the reader from here on is about other bytes.
    pub(super) fn is_drained(&mut self) {
        self.since = None;
        self.candidate = None;
    }
}

impl Woken {
    /// Nothing panics while it holds the lock.
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        state.at.get_or_insert_with(Instant::now);
        let reader = state.reader.clone();
        // Who is woken may look here at once.
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later_than(moment: Instant) -> Instant {
        loop {
            let now = Instant::now();
            if now > moment {
                return now;
            }
        }
    }

    #[test]
    fn bytes_count_from_the_wakeup_and_not_from_the_reading() {
        let mut readable = Readable::default();
        let cx = Context::from_waker(Waker::noop());
        let waker = readable.waker(&cx);
        readable.is_drained();
        let before = Instant::now();
        waker.wake_by_ref();
        let after = Instant::now();
        later_than(after);
        readable.waker(&cx);
        let first = readable.has_read();
        assert!((before..=after).contains(&first));
        // What follows in the same go was there no later than it is read.
        readable.waker(&cx);
        assert_eq!(readable.has_read(), first);
        readable.waker(&cx);
        readable.is_drained();
        readable.waker(&cx);
        assert!(readable.has_read() > after, "bytes that nobody had to be woken for");
    }

    #[test]
    fn a_wakeup_after_which_nothing_was_read_dates_nothing() {
        let mut readable = Readable::default();
        let cx = Context::from_waker(Waker::noop());
        let waker = readable.waker(&cx);
        readable.is_drained();
        waker.wake_by_ref();
        readable.waker(&cx);
        readable.is_drained();
        let later = later_than(Instant::now());
        waker.wake_by_ref();
        readable.waker(&cx);
        assert!(readable.has_read() >= later, "dated by a wakeup that was for nothing");
    }

    #[test]
    fn a_wakeup_in_the_midst_of_a_reading_that_finds_nothing_dates_what_comes() {
        let mut readable = Readable::default();
        let cx = Context::from_waker(Waker::noop());
        let waker = readable.waker(&cx);
        waker.wake_by_ref();
        let woken_by = Instant::now();
        readable.is_drained();
        later_than(woken_by);
        readable.waker(&cx);
        assert!(readable.has_read() <= woken_by);
    }
}
