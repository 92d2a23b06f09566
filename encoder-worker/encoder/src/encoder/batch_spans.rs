//! Trace spans of a batch: one below each sampled call that has texts in it, with links between calls that share the
//! batch.

use toolgate_telemetry::SPANS;
use tracing::{Span, info_span};

use super::formed::Formed;

/// Most calls that one call is linked with; each is linked with each other.
const LINKED_MAX: usize = 8;

/// Spans of a running batch. They end when this is dropped.
pub(super) struct BatchSpans {
    _spans: Vec<Span>,
}

impl BatchSpans {
    /// Begins the spans; creates none if no call of the batch is sampled.
    pub(super) fn begin(formed: &Formed) -> Self {
        let tickets = formed.tickets.iter().zip(formed.held());
        let sampled = tickets.filter(|(ticket, is_held)| *is_held && !ticket.call.is_none());
        let calls: Vec<&Span> = sampled.map(|(ticket, _)| &ticket.call).collect();
        // The tracing layer supports only one integer type here.
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let begin = |call: &&Span| {
            info_span!(
                target: SPANS,
                parent: *call,
                "batch",
                toolgate.batch.texts = number(formed.batch.texts()),
                toolgate.batch.tokens = number(formed.batch.tokens()),
            )
        };
        let spans: Vec<Span> = calls.iter().map(begin).collect();
        for (index, span) in spans.iter().enumerate() {
            let others = calls.iter().enumerate().filter(|(other, _)| *other != index);
            for (_, other) in others.take(LINKED_MAX) {
                span.follows_from(*other);
            }
        }
        Self { _spans: spans }
    }
}
