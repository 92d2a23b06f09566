//! Spans of calls that are served, of calls that are made, and of their parts. Names and attributes follow
//! OpenTelemetry's conventions for RPC. No span records text from a caller.

use http::HeaderMap;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::context;

/// Target of spans that are exported. Log lines don't show them. Without a collector no such span is created.
pub const SPANS: &str = "otlp";

/// Package of every service here.
pub(super) const PACKAGE: &str = "toolgate.v1";

/// Codes that are the service's own fault, and so mark its span as an error (OpenTelemetry, "gRPC status").
const FAULTS: [&str; 6] =
    ["UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"];

/// Span of one call.
#[derive(Debug, Clone)]
pub struct CallSpan(Span);

impl CallSpan {
    /// Creates the span of a call of `Service/Method` that came with these headers. It is a child of the caller's span
    /// if they name one.
    #[must_use]
    pub fn served(method: &str, headers: &HeaderMap) -> Self {
        let span = info_span!(
            target: SPANS,
            "served",
            otel.name = Empty,
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system.name = "grpc",
            rpc.method = Empty,
            rpc.response.status_code = Empty,
            error.type = Empty,
            toolgate.tenant = Empty,
        );
        if !span.is_disabled() {
            name(&span, method);
            if let Some(parent) = context::sent(headers) {
                // `set_parent` fails only for a span that has begun; this one is new.
                drop(span.set_parent(parent));
            }
        }
        Self(span)
    }

    /// Returns a disabled span, for a call that no trace shows.
    #[must_use]
    pub fn untraced() -> Self {
        Self(Span::none())
    }

    /// Creates the span of a call of `Service/Method` that this process makes to `host:port` on behalf of the current
    /// sampled call.
    #[must_use]
    pub fn to_peer(method: &str, peer: &str) -> Self {
        if !context::is_sampled() {
            return Self::untraced();
        }
        let span = info_span!(
            target: SPANS,
            "asked",
            otel.name = Empty,
            otel.kind = "client",
            otel.status_code = Empty,
            rpc.system.name = "grpc",
            rpc.method = Empty,
            server.address = Empty,
            server.port = Empty,
            error.type = Empty,
        );
        name(&span, method);
        if let Some((host, port)) = peer.rsplit_once(':') {
            span.record("server.address", host);
            if let Ok(port) = port.parse::<u16>() {
                span.record("server.port", i64::from(port));
            }
        }
        Self(span)
    }

    /// Returns the span, for instrumenting the work of the call.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0
    }

    /// Records the tenant of the call.
    pub fn of_tenant(&self, tenant: &str) {
        self.0.record("toolgate.tenant", tenant);
    }

    /// Records the outcome of a served call: the gRPC code, and the error reason, which is empty on success.
    pub fn answered(&self, code: &'static str, error: &'static str) {
        self.0.record("rpc.response.status_code", code);
        if !error.is_empty() {
            self.0.record("error.type", error);
        }
        if FAULTS.contains(&code) {
            self.0.record("otel.status_code", "ERROR");
        }
    }

    /// Records that an outgoing call failed with this error.
    pub fn failed(&self, error: &'static str) {
        self.0.record("error.type", error);
        self.0.record("otel.status_code", "ERROR");
    }
}

fn name(span: &Span, method: &str) {
    let method = format!("{PACKAGE}.{method}");
    span.record("otel.name", method.as_str());
    span.record("rpc.method", method.as_str());
}

/// Creates the span of a part of the current sampled call, such as a stage of Route. It ends when it is dropped.
/// Without a sampled call the span is disabled.
#[must_use]
pub fn part(name: &'static str) -> Span {
    if !context::is_sampled() {
        return Span::none();
    }
    info_span!(target: SPANS, "part", otel.name = name)
}

/// Returns the innermost span of the current sampled call, to serve as the parent on another thread.
#[must_use]
pub fn sampled_span() -> Span {
    if context::is_sampled() { Span::current() } else { Span::none() }
}
