//! When bytes could be read, which is before they are: while a process is busy, a connection waits for its turn.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

/// Looks at the wakeups of one connection's reading.
#[derive(Debug, Default)]
pub(super) struct Readable {
    woken: Arc<Woken>,
    waker: Option<Waker>,
    /// Since when there are bytes, while they are being read.
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct Woken(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reader: Option<Waker>,
    at: Option<Instant>,
}

impl Readable {
    /// Returns what to read with: it wakes whoever reads, and notes when.
    pub(super) fn waker(&mut self, cx: &Context<'_>) -> Waker {
        let mut state = self.woken.state();
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        drop(state);
        self.waker.get_or_insert_with(|| Waker::from(Arc::clone(&self.woken))).clone()
    }

    /// Returns since when the bytes that were just read could be read.
    pub(super) fn has_read(&mut self) -> Instant {
        let woken = self.woken.state().at.take();
        *self.since.get_or_insert_with(|| woken.unwrap_or_else(Instant::now))
    }

    /// There is nothing more to read for now.
    pub(super) fn is_drained(&mut self) {
        self.since = None;
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

    #[test]
    fn bytes_count_from_the_wakeup_and_not_from_the_reading() {
        let mut readable = Readable::default();
        let cx = Context::from_waker(Waker::noop());
        let waker = readable.waker(&cx);
        readable.is_drained();
        let before = Instant::now();
        waker.wake_by_ref();
        let after = Instant::now();
        while Instant::now() == after {}
        let first = readable.has_read();
        assert!((before..=after).contains(&first));
        // What follows in the same go was there no later than it is read.
        assert_eq!(readable.has_read(), first);
        readable.is_drained();
        assert!(readable.has_read() > after, "bytes that nobody had to be woken for");
    }
}
