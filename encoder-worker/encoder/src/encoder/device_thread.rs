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
            let panicked = matches!(&ran.result, Err(error) if error.panicked);
            if self.events.send(Event::Ran(ran)).is_err() || panicked {
                return;
            }
        }
    }

    /// Runs a batch without the texts of callers who are gone: this is the last moment at which a caller may leave at no
    /// cost.
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
            Ok(Ok(vectors)) => Ok(vectors),
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

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
