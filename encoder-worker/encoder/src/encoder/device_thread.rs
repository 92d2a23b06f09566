//! Thread that owns the device. It runs batches and does nothing else: texts come as tokens, and others answer callers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tracing::Span;

use super::batch_spans::BatchSpans;
use super::batcher::Event;
use super::formed::Formed;
use super::handover::{Handover, Work};
use super::stats::Counters;
use crate::backend::Backend;

pub(super) struct DeviceThread {
    pub(super) backend: Box<dyn Backend>,
    pub(super) handover: Arc<Handover>,
    pub(super) events: Sender<Event>,
    pub(super) counters: Arc<Counters>,
}

/// Batch that the device is done with.
pub(super) struct Ran {
    pub(super) formed: Formed,
    /// Moment at which the device's thread took it.
    pub(super) at: Instant,
    pub(super) took: Duration,
    pub(super) result: Result<Vec<Vec<f32>>, RunError>,
}

/// Failure of a batch.
pub(super) struct RunError {
    pub(super) cause: String,
    /// True if the model panicked. The device runs nothing afterwards.
    pub(super) panicked: bool,
}

/// Guard that tells the batcher of the end of this thread, however it ends.
struct TellEnd(Sender<Event>);

impl Drop for TellEnd {
    fn drop(&mut self) {
        // No batcher is left when the encoder is stopping.
        let _ = self.0.send(Event::DeviceEnded);
    }
}

impl DeviceThread {
    /// Runs until the handover is closed, or until the model panics.
    pub(super) fn run(mut self) {
        let _tell = TellEnd(self.events.clone());
        self.backend.settle();
        loop {
            let formed = match self.handover.wait() {
                Work::End => return,
                Work::Rouse => {
                    self.backend.rouse();
                    continue;
                }
                Work::Run(formed) => formed,
            };
            // The batcher forms the next batch while this one runs.
            if self.events.send(Event::Taken).is_err() {
                return;
            }
            let ran = self.run_batch(formed);
            if ran.result.is_err() {
                // The batch that waits may have more texts of these requests, and others must not fail with them again.
                ran.formed.note_failed();
            }
            let panicked = matches!(&ran.result, Err(error) if error.panicked);
            if self.events.send(Event::Ran(ran)).is_err() || panicked {
                return;
            }
        }
    }

    /// Runs a batch without the texts of callers who are gone and of requests that failed: this is the last moment at
    /// which a caller may leave at no cost.
    fn run_batch(&mut self, mut formed: Formed) -> Ran {
        let at = Instant::now();
        formed.leave_out_gone(at);
        self.end_waits(&mut formed, at);
        if formed.batch.is_empty() {
            return Ran { formed, at, took: Duration::ZERO, result: Ok(Vec::new()) };
        }
        let spans = BatchSpans::begin(&formed);
        let started = Instant::now();
        let backend = &mut self.backend;
        // The backend is not used again after a panic.
        let result = catch_unwind(AssertUnwindSafe(|| backend.forward(&formed.batch)));
        let took = started.elapsed();
        drop(spans);
        let result = match result {
            Ok(Ok(vectors)) => check(&vectors, &formed)
                .map(|()| vectors)
                .map_err(|cause| RunError { cause, panicked: false }),
            Ok(Err(error)) => Err(RunError { cause: error.to_string(), panicked: false }),
            Err(panic) => Err(RunError { cause: panic_text(panic.as_ref()), panicked: true }),
        };
        Ran { formed, at, took, result }
    }

    fn end_waits(&self, formed: &mut Formed, at: Instant) {
        let held = formed.held();
        for (ticket, is_held) in formed.tickets.iter_mut().zip(held) {
            ticket.queue = Span::none();
            if ticket.is_first && is_held {
                let waited = at.saturating_duration_since(ticket.arrived).as_micros();
                self.counters.queue_wait.add(u64::try_from(waited).unwrap_or(u64::MAX));
            }
        }
    }
}

/// Checks the results of the backend, so that nonsense does not get into an index. It is checked here and not where
/// results are handed out: the device takes the next batch before that, and a request that failed may have texts in it.
fn check(vectors: &[Vec<f32>], formed: &Formed) -> Result<(), String> {
    if vectors.len() != formed.slots.len() {
        return Err(format!("{} vectors for {} texts", vectors.len(), formed.slots.len()));
    }
    if !vectors.iter().all(|vector| is_finite(vector)) {
        return Err("the result is not finite".into());
    }
    Ok(())
}

/// Returns true if all numbers are finite. It looks at all of them, without a branch for each, because the device waits
/// meanwhile.
fn is_finite(vector: &[f32]) -> bool {
    let magnitudes = vector.iter().map(|number| number.to_bits() & !SIGN);
    magnitudes.fold(0, u32::max) < f32::INFINITY.to_bits()
}

/// Bit of a number's sign.
const SIGN: u32 = 1 << 31;

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::backend::{BackendError, Batch, BatchLimits};
    use crate::encoder::formed::Caller;

    /// Backend for two batches. The second one is put in the handover while the first one runs, as the batcher does.
    struct TwoBatches<F> {
        handover: Arc<Handover>,
        second: Option<Formed>,
        /// What else happens while the first one runs, and the numbers of its result.
        meanwhile: F,
        ran: Sender<Batch>,
    }

    impl<F: FnMut() -> Result<f32, BackendError> + Send> Backend for TwoBatches<F> {
        fn name(&self) -> &'static str {
            "two batches"
        }

        fn batch_tokens(&self) -> usize {
            7
        }

        fn prepare(&mut self, _: BatchLimits) -> Result<(), BackendError> {
            Ok(())
        }

        fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
            self.ran.send(batch.clone()).expect("the test listens");
            let number = match self.second.take() {
                Some(second) => {
                    self.handover.put(Some(second), false).expect("no batch waits");
                    (self.meanwhile)()?
                }
                None => {
                    self.handover.close();
                    0.0
                }
            };
            Ok(vec![vec![number]; batch.texts()])
        }
    }

    /// Runs both batches to the end, and returns the tokens of those that reached the device.
    fn run(
        first: Formed,
        second: Formed,
        meanwhile: impl FnMut() -> Result<f32, BackendError> + Send + 'static,
    ) -> Vec<Vec<u32>> {
        let handover = Arc::new(Handover::default());
        let (ran, batches) = channel();
        let (events, _events) = channel();
        handover.put(Some(first), false).expect("no batch waits");
        let second = Some(second);
        let backend = TwoBatches { handover: Arc::clone(&handover), second, meanwhile, ran };
        let backend = Box::new(backend);
        DeviceThread { backend, handover, events, counters: Arc::default() }.run();
        batches.into_iter().map(|batch| batch.token_ids().to_vec()).collect()
    }

    fn caller() -> Caller {
        Caller { left: Arc::default(), deadline: None }
    }

    #[test]
    fn texts_of_a_request_that_failed_are_left_out_of_the_batch_that_waits() {
        check_failure(|| Err(BackendError("out of memory".into())));
    }

    #[test]
    fn texts_of_a_request_whose_result_is_refused_are_too() {
        check_failure(|| Ok(f32::NAN));
    }

    #[test]
    fn numbers_are_finite_or_not() {
        for number in [0.0, -0.0, 1.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE] {
            assert!(is_finite(&[1.0, number, -1.0]), "{number}");
        }
        for number in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!is_finite(&[1.0, number, -1.0]), "{number}");
        }
        assert!(is_finite(&[]));
    }

    /// Checks what is left out of the second batch after the first one failed by `meanwhile`.
    fn check_failure(meanwhile: impl FnMut() -> Result<f32, BackendError> + Send + 'static) {
        let [unlucky, lucky, late] = [caller(), caller(), caller()];
        late.left.leave();
        let first = Formed::of(&[&unlucky, &late], &[&[1], &[2]]);
        let mut second = Formed::of(&[&unlucky, &lucky, &lucky], &[&[3], &[4], &[5]]);
        second.tickets[0].has_failed = Arc::clone(&first.tickets[0].has_failed);
        // Nothing of this one was in the first batch when it ran.
        second.tickets[2].has_failed = Arc::clone(&first.tickets[1].has_failed);
        let [of_unlucky, of_late] = [0, 1].map(|at| Arc::clone(&first.tickets[at].has_failed));
        let ran = run(first, second, meanwhile);
        assert_eq!(ran, [vec![1], vec![4, 5]]);
        assert!(of_unlucky.load(Ordering::Relaxed) && !of_late.load(Ordering::Relaxed));
        assert!(!unlucky.left.has_left(), "the caller has not left");
    }

    #[test]
    fn who_leaves_after_the_batch_was_formed_is_left_out_of_it() {
        let [leaves, stays] = [caller(), caller()];
        let first = Formed::of(&[&stays], &[&[1]]);
        let second = Formed::of(&[&leaves, &stays], &[&[2], &[3], &[4]]);
        let left = Arc::clone(&leaves.left);
        let ran = run(first, second, move || {
            left.leave();
            Ok(0.0)
        });
        assert_eq!(ran, [[1], [3]]);
    }
}
