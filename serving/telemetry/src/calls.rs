//! Spans: of calls that are served, of calls that are made, and of the parts that they consist of. Names
//! and attributes follow OpenTelemetry's conventions for RPC. Nothing here takes a text of a caller's.

use http::HeaderMap;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::context;

/// The target of spans that are exported. Log lines don't show them; without a collector none is made.
pub const SPANS: &str = "otlp";

/// The package of every service here.
pub(super) const PACKAGE: &str = "toolgate.v1";

/// Codes that are the service's own fault, and so an error of its span (OpenTelemetry, "gRPC status").
const FAULTS: [&str; 6] =
    ["UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"];

/// The span of one call.
#[derive(Debug, Clone)]
pub struct CallSpan(Span);

impl CallSpan {
    /// A call of `Service/Method` that came with these headers: below the caller's span when they name one.
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
                // It was made just now, so that it has not begun.
                drop(span.set_parent(parent));
            }
        }
        Self(span)
    }

    /// A call that no trace shows.
    #[must_use]
    pub fn untraced() -> Self {
        Self(Span::none())
    }

    /// A call of `Service/Method` that this process makes to `host:port`, for the sampled call under way.
    #[must_use]
    pub fn asked(method: &str, peer: &str) -> Self {
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

    /// For the work that is done in it.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0
    }

    /// Whose call it is.
    pub fn of_tenant(&self, tenant: &str) {
        self.0.record("toolgate.tenant", tenant);
    }

    /// How the served call ended: the gRPC code, and the error's reason, empty when there was none.
    pub fn answered(&self, code: &'static str, error: &'static str) {
        self.0.record("rpc.response.status_code", code);
        if !error.is_empty() {
            self.0.record("error.type", error);
        }
        if FAULTS.contains(&code) {
            self.0.record("otel.status_code", "ERROR");
        }
    }

    /// The call that was made failed in this way.
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

/// A part of the sampled call under way, such as a stage of Route. It ends when it is dropped; without a
/// call that is sampled it is nothing.
#[must_use]
pub fn part(name: &'static str) -> Span {
    if !context::is_sampled() {
        return Span::none();
    }
    info_span!(target: SPANS, "part", otel.name = name)
}

/// The innermost span of the sampled call under way, to be its parent on another thread.
#[must_use]
pub fn sampled_span() -> Span {
    if context::is_sampled() { Span::current() } else { Span::none() }
}
