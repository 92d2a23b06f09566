//! Batch that is ready for the device, with what is needed to hand out its results and to leave out who is gone.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tracing::Span;

use crate::backend::Batch;

/// Number of a request; later ones have larger numbers.
pub(super) type RequestId = u64;

/// Record of a caller's leaving.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Set before the time is read. If the time lies before some moment, this was true at that moment.
    has_left: AtomicBool,
    at: OnceLock<Instant>,
}

impl Left {
    pub(super) fn leave(&self) {
        self.has_left.swap(true, Ordering::SeqCst);
        // Set only here, once.
        let _ = self.at.set(Instant::now());
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::SeqCst)
    }
}

/// Guard that a caller holds while it waits.
pub(super) struct Waiting(pub(super) Arc<Left>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Caller that waits for an answer until it leaves, or until its deadline.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) left: Arc<Left>,
    pub(super) deadline: Option<Instant>,
}

/// Reason that a request is no longer worth any work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The caller left.
    Abandoned,
    /// The deadline has passed.
    Expired,
}

impl Caller {
    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        // A caller whose deadline passes leaves too; the deadline then counts as the reason.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            Some(Gone::Expired)
        } else if self.left.has_left() {
            Some(Gone::Abandoned)
        } else {
            None
        }
    }

    /// Returns true if the caller had left at a moment in the past, by the caller's own clock and not by the result of
    /// [`Self::gone`] at that time.
    pub(super) fn had_gone(&self, at: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline < at)
            || self.left.at.get().is_some_and(|left| *left < at)
    }
}

/// Request that has texts in a batch.
pub(super) struct Ticket {
    pub(super) request: RequestId,
    pub(super) caller: Caller,
    pub(super) arrived: Instant,
    /// Number of its texts in the batch, those left out later among them.
    pub(super) texts: usize,
    /// True if no text of the request was in a batch before.
    pub(super) is_first: bool,
    /// True once the device failed on a batch with a text of the request. All its tickets share this.
    pub(super) has_failed: Arc<AtomicBool>,
    /// Span of the call, if it is sampled.
    pub(super) call: Span,
    /// Span of the wait for a batch. The device's thread ends it.
    pub(super) queue: Span,
}

/// Text of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// Index of its request's ticket.
    pub(super) ticket: usize,
    pub(super) tokens: u32,
    pub(super) truncated: bool,
}

/// Batch for the device, with the destinations of its results.
#[derive(Default)]
pub(super) struct Formed {
    pub(super) batch: Batch,
    pub(super) slots: Vec<Slot>,
    pub(super) tickets: Vec<Ticket>,
    /// True if several flows waited, then or of late.
    pub(super) of_several: bool,
}

impl Formed {
    /// Leaves out the texts of callers who are gone at `now`, and of requests that failed.
    pub(super) fn leave_out_gone(&mut self, now: Instant) {
        let is_gone = |ticket: &Ticket| {
            ticket.has_failed.load(Ordering::Relaxed) || ticket.caller.gone(now).is_some()
        };
        let gone: Vec<bool> = self.tickets.iter().map(is_gone).collect();
        if !gone.contains(&true) {
            return;
        }
        let mut batch = Batch::default();
        let texts = self.batch.bounds().windows(2).map(|ends| ends[0]..ends[1]);
        for (slot, text) in self.slots.iter().zip(texts) {
            if !gone[slot.ticket] {
                batch.push(&self.batch.token_ids()[text]);
            }
        }
        self.batch = batch;
        self.slots.retain(|slot| !gone[slot.ticket]);
    }

    /// Notes that the device failed on the batch, so that later batches leave out its requests.
    pub(super) fn note_failed(&self) {
        for (ticket, is_held) in self.tickets.iter().zip(self.held()) {
            if is_held {
                ticket.has_failed.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns for each ticket if a text of it is in the batch.
    pub(super) fn held(&self) -> Vec<bool> {
        let mut held = vec![false; self.tickets.len()];
        for slot in &self.slots {
            held[slot.ticket] = true;
        }
        held
    }
}

#[cfg(test)]
impl Formed {
    /// Returns a batch of these texts, which belong to the callers in turn. Each caller has one request.
    pub(super) fn of(callers: &[&Caller], texts: &[&[u32]]) -> Self {
        let ticket = |(request, caller): (usize, &&Caller)| Ticket {
            request: request as RequestId,
            caller: Caller::clone(caller),
            arrived: Instant::now(),
            texts: 2,
            is_first: true,
            has_failed: Arc::default(),
            call: Span::none(),
            queue: Span::none(),
        };
        let tickets = callers.iter().enumerate().map(ticket).collect();
        let mut formed = Self { tickets, ..Self::default() };
        for (index, ids) in texts.iter().enumerate() {
            formed.batch.push(ids);
            let ticket = index % callers.len();
            formed.slots.push(Slot { ticket, tokens: ids.len() as u32, truncated: false });
        }
        formed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn caller(deadline: Option<Instant>) -> Caller {
        Caller { left: Arc::default(), deadline }
    }

    #[test]
    fn leaving_is_dated_by_the_caller() {
        let caller = caller(None);
        let waiting = Waiting(Arc::clone(&caller.left));
        let before = Instant::now();
        drop(waiting);
        let after = Instant::now() + Duration::from_millis(1);
        assert!(!caller.had_gone(before));
        assert!(caller.had_gone(after));
        assert_eq!(caller.gone(after), Some(Gone::Abandoned));
        let late = Caller { deadline: Some(before), left: Arc::default() };
        assert!(!late.had_gone(before) && late.had_gone(after));
        assert_eq!(late.gone(after), Some(Gone::Expired));
    }

    #[test]
    fn texts_of_callers_who_left_do_not_reach_the_device() {
        let stays = caller(None);
        let leaves = caller(None);
        let mut formed = Formed::of(&[&leaves, &stays], &[&[1, 2], &[3], &[4, 5, 6], &[7]]);
        formed.leave_out_gone(Instant::now());
        assert_eq!(formed.batch.texts(), 4);
        leaves.left.leave();
        formed.leave_out_gone(Instant::now());
        assert_eq!(
            (formed.batch.token_ids(), formed.batch.bounds()),
            (&[3, 7][..], &[0, 1, 2][..])
        );
        assert_eq!(formed.slots.iter().map(|slot| slot.ticket).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(formed.held(), [false, true]);
    }
}
