//! Trace spans of a batch: one below each sampled call that has texts in it, with links between calls that share the
//! batch.

use toolgate_telemetry::SPANS;
use tracing::{Span, info_span};

use super::device_loop::Slot;
use super::request::Request;
use crate::backend::Batch;

/// Most calls that one call is linked with; each is linked with each other.
const LINKED_MAX: usize = 8;

/// Spans of a running batch. They end with [`Self::end`].
#[derive(Default)]
pub(super) struct BatchSpans(Vec<Span>);

impl BatchSpans {
    /// Begins the spans; creates none if no call of the batch is sampled.
    pub(super) fn begin(active: &[Request], slots: &[Slot], batch: &Batch) -> Self {
        let mut calls: Vec<(usize, &Span)> =
            slots.iter().map(|slot| (slot.request, active[slot.request].call())).collect();
        calls.retain(|(_, call)| !call.is_none());
        if calls.is_empty() {
            return Self::default();
        }
        calls.sort_unstable_by_key(|(request, _)| *request);
        calls.dedup_by_key(|(request, _)| *request);
        // The tracing layer supports only one integer type here.
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let begin = |(_, call): &(usize, &Span)| {
            info_span!(
                target: SPANS,
                parent: *call,
                "batch",
                toolgate.batch.texts = number(batch.texts()),
                toolgate.batch.tokens = number(batch.tokens()),
            )
        };
        let spans: Vec<Span> = calls.iter().map(begin).collect();
        for (span, (request, _)) in spans.iter().zip(&calls) {
            let others = calls.iter().filter(|(other, _)| other != request);
            for (_, other) in others.take(LINKED_MAX) {
                span.follows_from(*other);
            }
        }
        Self(spans)
    }

    /// Ends the spans when the device is done.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}
