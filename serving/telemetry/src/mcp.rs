//! Spans of requests of MCP: those that hosts send, and those that MCP servers are sent on their behalf. Names and attributes follow
//! OpenTelemetry's conventions for MCP. No span records arguments, results, or a name that only a caller has said.

use http::{HeaderMap, HeaderValue};
use opentelemetry::trace::TraceContextExt as _;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::calls::SPANS;
use super::context::{self, TraceHeaders};

/// Method under which requests are shown whose own method is nobody's.
const OTHER_METHOD: &str = "_OTHER";

/// Method of calls of tools.
const CALL: &str = "tools/call";

/// Span of one request of MCP.
#[derive(Debug, Clone)]
pub struct McpSpan(Span);

/// MCP server that a request is sent to.
#[derive(Debug, Clone, Copy)]
pub struct McpServerLabel<'a> {
    /// Name of the server.
    pub name: &'a str,
    /// Host and port of its URL; `None` for a process.
    pub address: Option<(&'a str, u16)>,
    /// Revision of MCP that it speaks.
    pub protocol: &'a str,
}

impl McpSpan {
    /// Creates the span of a request that a host sent with this `traceparent` and `tracestate`. It is a child of the host's span
    /// if they name one. `method` is `None` for one that is not of MCP.
    #[must_use]
    pub fn served(method: Option<&str>, parent: Option<&str>, state: Option<&str>) -> Self {
        let span = Self::new("server", method.unwrap_or(OTHER_METHOD));
        if let Some(parent) = parent
            && !span.0.is_disabled()
            && let Some(parent) = context::sent(&headers(parent, state.unwrap_or_default()))
        {
            // `set_parent` fails only for a span that has begun; this one is new.
            drop(span.0.set_parent(parent));
        }
        span
    }

    /// Creates the span of a request that an MCP server is sent on behalf of the current sampled request.
    #[must_use]
    pub fn sent(method: &str, server: McpServerLabel<'_>) -> Self {
        if !context::is_sampled() {
            return Self::untraced();
        }
        let span = Self::new("client", method);
        span.0.record("toolgate.server", server.name);
        if let Some((host, port)) = server.address {
            span.0.record("server.address", host);
            span.0.record("server.port", i64::from(port));
        }
        span.speaks(server.protocol, server.address.is_some());
        span
    }

    /// Returns a disabled span, for a request that no trace shows.
    #[must_use]
    pub fn untraced() -> Self {
        Self(Span::none())
    }

    fn new(kind: &'static str, method: &str) -> Self {
        let span = info_span!(
            target: SPANS,
            "mcp",
            otel.name = method,
            otel.kind = kind,
            otel.status_code = Empty,
            mcp.method.name = method,
            mcp.protocol.version = Empty,
            gen_ai.operation.name = Empty,
            gen_ai.tool.name = Empty,
            gen_ai.prompt.name = Empty,
            jsonrpc.request.id = Empty,
            network.transport = Empty,
            rpc.response.status_code = Empty,
            error.type = Empty,
            server.address = Empty,
            server.port = Empty,
            toolgate.server = Empty,
            toolgate.tenant = Empty,
        );
        if method == CALL {
            span.record("gen_ai.operation.name", "execute_tool");
        }
        Self(span)
    }

    /// Returns the span, for instrumenting the work of the request.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0
    }

    /// Returns whether the span is recorded by nobody.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.0.is_disabled()
    }

    /// Returns what a peer is told of the trace within this span; `None` if there is no trace.
    #[must_use]
    pub fn headers(&self) -> Option<TraceHeaders> {
        self.0.in_scope(context::headers_of_trace)
    }

    /// Records the revision of MCP, empty where it is not agreed on yet, and whether the messages go over a network.
    pub fn speaks(&self, protocol: &str, is_networked: bool) {
        if !protocol.is_empty() {
            self.0.record("mcp.protocol.version", protocol);
        }
        self.0.record("network.transport", if is_networked { "tcp" } else { "pipe" });
    }

    /// Records the tenant of the request.
    pub fn of_tenant(&self, tenant: &str) {
        self.0.record("toolgate.tenant", tenant);
    }

    /// Records the number of the request on its connection.
    pub fn of_request(&self, id: i64) {
        self.0.record("jsonrpc.request.id", id.to_string());
    }

    /// Records the tool that is called. It must be one that is there.
    pub fn of_tool(&self, tool: &str) {
        name_tool(&self.0, tool);
    }

    /// Records the prompt that is asked for. It must be one that is there.
    pub fn of_prompt(&self, prompt: &str) {
        self.0.record("gen_ai.prompt.name", prompt);
        rename(&self.0, format!("prompts/get {prompt}"));
    }

    /// Records that the answer was this error of JSON-RPC.
    pub fn refused(&self, code: i64) {
        let code = code.to_string();
        self.0.record("rpc.response.status_code", code.as_str());
        self.failed(&code);
    }

    /// Records that the request failed with this kind of error.
    pub fn failed(&self, error: &str) {
        self.0.record("error.type", error);
        self.0.record("otel.status_code", "ERROR");
    }
}

/// Records the tool that the current request calls. It must be one that is there.
pub fn serves_tool(tool: &str) {
    name_tool(&Span::current(), tool);
}

fn name_tool(span: &Span, tool: &str) {
    span.record("gen_ai.tool.name", tool);
    rename(span, format!("{CALL} {tool}"));
}

/// Renames a span. One that has begun takes no other `otel.name`.
fn rename(span: &Span, name: String) {
    if !span.is_disabled() {
        span.context().span().update_name(name);
    }
}

fn headers(parent: &str, state: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [(context::PARENT, parent), (context::STATE, state)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers
}
