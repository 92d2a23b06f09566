//! Trace that a call belongs to, in the format of W3C Trace Context: read from the caller's headers and passed on to
//! the services that are called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// Parent of calls that are not sampled.
const NOBODYS: &str = "00-00000000000000000000000000000001-0000000000000001-00";

pub(super) const PARENT: &str = "traceparent";
pub(super) const STATE: &str = "tracestate";

/// Most bytes of a caller's `tracestate`: the length that everybody must pass on. A longer one is dropped.
const STATE_MAX: usize = 512;

/// True if spans are recorded; fixed once the process has started. `tracing::enabled!` would be correct too, but it
/// would disturb the filters of the layers for the next record.
static RECORDED: AtomicBool = AtomicBool::new(false);

/// Turns on the recording of spans.
pub(super) fn record_from_now() {
    RECORDED.store(true, Relaxed);
}

fn are_recorded() -> bool {
    RECORDED.load(Relaxed)
}

/// Headers that identify the trace of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHeaders {
    /// Trace, calling span, and sampling flag.
    pub traceparent: String,
    /// Additions of tracing systems; often empty.
    pub tracestate: String,
}

/// Returns the headers for a call that is made now; `None` if no spans are recorded. Work that no call asked for, such
/// as texts that a process embeds for itself, is not sampled anywhere.
#[must_use]
pub fn trace_headers() -> Option<TraceHeaders> {
    let nobodys = || TraceHeaders { traceparent: NOBODYS.to_owned(), tracestate: String::new() };
    are_recorded().then(|| headers_of_trace().unwrap_or_else(nobodys))
}

/// Returns the headers for a call that the current call makes; `None` if there is none, or no spans are recorded.
#[must_use]
pub fn headers_of_trace() -> Option<TraceHeaders> {
    if !are_recorded() {
        return None;
    }
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&Context::current(), &mut headers);
    let traceparent = headers.remove(PARENT)?;
    Some(TraceHeaders { traceparent, tracestate: headers.remove(STATE).unwrap_or_default() })
}

/// Returns a future whose work belongs to the current call, on whichever task it runs. It may outlive the call's span.
pub fn in_trace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let context = Context::current();
    let mut work = Box::pin(work);
    std::future::poll_fn(move |polled| {
        let _current = context.clone().attach();
        work.as_mut().poll(polled)
    })
}

/// Returns the trace of the current call in hexadecimal, if it is sampled.
#[must_use]
pub fn sampled_trace() -> Option<String> {
    sampled_ids().map(|(trace, _)| trace)
}

/// Returns the trace and the innermost span of the current call, if it is sampled.
pub(super) fn sampled_ids() -> Option<(String, String)> {
    let ids =
        |context: &SpanContext| (context.trace_id().to_string(), context.span_id().to_string());
    of_current(|context| context.is_sampled().then(|| ids(context)))
}

pub(super) fn is_sampled() -> bool {
    of_current(|context| context.is_sampled().then_some(())).is_some()
}

fn of_current<T>(read: impl FnOnce(&SpanContext) -> Option<T>) -> Option<T> {
    if !are_recorded() {
        return None;
    }
    Context::map_current(|context| read(context.span().span_context()))
}

/// Reads the caller's trace context; returns `None` when it is missing or can't be parsed.
pub(super) fn sent(headers: &HeaderMap) -> Option<Context> {
    headers.get(PARENT)?;
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Sent(headers));
    context.has_active_span().then_some(context)
}

/// Extractor that sees the two trace headers and nothing else.
struct Sent<'a>(&'a HeaderMap);

impl Extractor for Sent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let value = self.0.get(key)?.to_str().ok()?;
        (key != STATE || value.len() <= STATE_MAX).then_some(value)
    }

    fn keys(&self) -> Vec<&str> {
        vec![PARENT, STATE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(parent: &str, state: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(PARENT, parent.parse().expect("a header"));
        headers.insert(STATE, state.parse().expect("a header"));
        headers
    }

    #[test]
    fn what_callers_send_is_read() {
        let context = sent(&headers(GOOD, "a=b")).expect("a parent");
        let span = context.span().span_context().clone();
        assert_eq!(span.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(span.trace_state().header(), "a=b");
        let unsampled = sent(&headers(&GOOD.replace("-01", "-00"), "")).expect("a parent");
        assert!(!unsampled.span().span_context().is_sampled());
    }

    #[test]
    fn what_makes_no_sense_is_no_parent() {
        let zero = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        for parent in ["", "00", zero, "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"] {
            assert!(sent(&headers(parent, "")).is_none(), "{parent}");
        }
        assert!(sent(&HeaderMap::new()).is_none());
    }

    #[test]
    fn a_long_state_is_left_out() {
        let long = format!("a={}", "b".repeat(STATE_MAX));
        let context = sent(&headers(GOOD, &long)).expect("a parent");
        assert_eq!(context.span().span_context().trace_state().header(), "");
    }
}
