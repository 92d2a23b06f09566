//! Times at which bytes became readable, which is earlier than they are read: while a process is busy, a connection
//! waits for its turn.
//!
//! A wakeup gives that time. It comes when the runtime polls the kernel, so the time before that, while bytes lay in
//! the kernel's socket and every thread was busy, is not counted. A wakeup may also be spurious: the runtime wakes a
//! task that it had made pause, although there was something to read, or nothing any more. A wakeup after which nothing
//! is read is ignored.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Instant;

use parking_lot::Mutex;

/// Observer of the wakeups for reading from one connection.
#[derive(Debug, Default)]
pub(super) struct Readable {
    woken: Arc<Woken>,
    waker: Option<Waker>,
    /// Time of the wakeup after which the connection is being read.
    candidate: Option<Instant>,
    /// Time since which there are bytes, while they are being read.
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct Woken(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reader: Option<Waker>,
    /// Time when the reader was woken; taken when it reads.
    at: Option<Instant>,
}

impl Readable {
    /// Returns the waker to read with: it wakes the reader and records the time.
    pub(super) fn waker(&mut self, cx: &Context<'_>) -> Waker {
        let mut state = self.woken.0.lock();
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        let woken = state.at.take();
        drop(state);
        self.candidate = self.candidate.or(woken);
        self.waker.get_or_insert_with(|| Waker::from(Arc::clone(&self.woken))).clone()
    }

    /// Returns the time since which the bytes that were just read were readable.
    pub(super) fn has_read(&mut self) -> Instant {
        let woken = self.candidate.take();
        *self.since.get_or_insert_with(|| woken.unwrap_or_else(Instant::now))
    }

    /// Records that nothing more can be read for now. Later wakeups concern other bytes.
    pub(super) fn is_drained(&mut self) {
        self.since = None;
        self.candidate = None;
    }
}

impl Woken {}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.0.lock();
        state.at.get_or_insert_with(Instant::now);
        let reader = state.reader.clone();
        // The reader may lock the state as soon as it is woken.
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
        // Bytes that follow in the same read were readable no later than they are read.
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
