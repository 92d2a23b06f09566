//! Spans of requests to servers on behalf of hosts, and the trace that servers are told in `_meta`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate_telemetry::{McpServerLabel, McpSpan, TraceHeaders};

use super::server::Server;
use crate::connection::{CallError, Connection, Outgoing};
use crate::target::Upstream;

/// Part of a result that says whether a tool failed.
#[derive(Deserialize)]
struct Verdict {
    #[serde(default, rename = "isError")]
    is_error: bool,
}

impl Server {
    /// Gives a request its span, and tells the server of it. Without a trace the request stays as it is.
    pub(super) fn trace(&self, connection: &Connection, outgoing: &mut Outgoing) {
        let address = match &self.entry.upstream {
            Upstream::Process(_) => None,
            Upstream::Http(endpoint) => {
                endpoint.url.host_str().zip(endpoint.url.port_or_known_default())
            }
        };
        let identity = connection.identity();
        let label =
            McpServerLabel { name: &self.entry.name, address, protocol: &identity.protocol };
        let span = McpSpan::sent(&outgoing.method, label);
        let tool = outgoing.params.get("name").and_then(Value::as_str);
        if let Some(tool) = tool.filter(|_| outgoing.method == "tools/call" && !span.is_disabled())
            && self.lists(tool)
        {
            span.of_tool(tool);
        }
        if let Some(trace) = span.headers() {
            tell(&mut outgoing.params, trace);
        }
        outgoing.span = span;
    }

    /// Returns whether a tool is in the listing. What is not is only a caller's word.
    fn lists(&self, name: &str) -> bool {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            name: std::borrow::Cow<'a, str>,
        }
        self.listing().is_some_and(|listing| {
            let named = |raw: &RawValue| {
                serde_json::from_str::<Named<'_>>(raw.get()).is_ok_and(|tool| tool.name == name)
            };
            listing.tools.iter().any(|raw| named(raw))
        })
    }
}

/// Records how a request ended.
pub(super) fn record(span: &McpSpan, outcome: &Result<Box<RawValue>, CallError>) {
    if span.is_disabled() {
        return;
    }
    match outcome {
        Ok(result) => {
            let verdict = serde_json::from_str::<Verdict>(result.get());
            if verdict.is_ok_and(|verdict| verdict.is_error) {
                span.failed("tool_error");
            }
        }
        Err(CallError::Server(error)) => span.refused(error.code),
        Err(CallError::TooLarge(_)) => span.failed("too_large"),
        Err(CallError::Timeout(_)) => span.failed("timeout"),
        Err(CallError::Login) => span.failed("login"),
        Err(CallError::Scopes(_)) => span.failed("scopes"),
        Err(CallError::Lost { .. }) => span.failed("lost"),
    }
}

/// Sets the trace in the metadata of a request, in the place of the host's.
fn tell(params: &mut Map<String, Value>, trace: TraceHeaders) {
    let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    let Some(meta) = meta.as_object_mut() else { return };
    meta.insert("traceparent".to_owned(), Value::from(trace.traceparent));
    if trace.tracestate.is_empty() {
        meta.remove("tracestate");
    } else {
        meta.insert("tracestate".to_owned(), Value::from(trace.tracestate));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_trace_takes_the_place_of_the_hosts() {
        let trace = |state: &str| TraceHeaders {
            traceparent: "00-a-b-01".to_owned(),
            tracestate: state.to_owned(),
        };
        let mut params = Map::new();
        tell(&mut params, trace("a=1"));
        let wanted = json!({"_meta": {"traceparent": "00-a-b-01", "tracestate": "a=1"}});
        assert_eq!(Value::Object(params), wanted);
        let given = json!({"x": 1, "_meta": {"other": 2, "traceparent": "y", "tracestate": "z"}});
        let Value::Object(mut params) = given else { panic!("an object") };
        tell(&mut params, trace(""));
        let wanted = json!({"x": 1, "_meta": {"other": 2, "traceparent": "00-a-b-01"}});
        assert_eq!(Value::Object(params), wanted);
    }
}
