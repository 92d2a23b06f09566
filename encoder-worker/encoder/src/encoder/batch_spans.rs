//! What traces show of a batch: a span below each sampled call that has texts in it, with links between
//! calls that share it.

use toolgate_telemetry::SPANS;
use tracing::{Span, info_span};

use super::device_loop::Slot;
use super::request::Request;
use crate::backend::Batch;

/// Calls that one is linked with: each is with each other.
const LINKED_MAX: usize = 8;

/// The spans of a batch that runs. They end with [`Self::end`].
#[derive(Default)]
pub(super) struct BatchSpans(Vec<Span>);

impl BatchSpans {
    /// Begins them: none where no call of the batch is sampled.
    pub(super) fn begin(active: &[Request], slots: &[Slot], batch: &Batch) -> Self {
        let mut calls: Vec<(usize, &Span)> =
            slots.iter().map(|slot| (slot.request, active[slot.request].call())).collect();
        calls.retain(|(_, call)| !call.is_none());
        if calls.is_empty() {
            return Self::default();
        }
        calls.sort_unstable_by_key(|(request, _)| *request);
        calls.dedup_by_key(|(request, _)| *request);
        // The layer has numbers of one type.
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

    /// The device is done.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}
