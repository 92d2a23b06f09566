//! Spans of hosts' requests: a face whose every request has one, a child of the host's own.

use std::borrow::Cow;

use axum::http::request::Parts;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, NumberOrString, ProtocolVersion, ServerConfig,
    ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{RoleServer, ServerHandler as _};
use serde_json::Value;
use toolgate_telemetry::McpSpan;
use tracing::Instrument as _;

use super::Face;
use crate::relayed;

/// Method whose name is recorded once its answer shows that there is such a prompt.
const GET_PROMPT: &str = "prompts/get";

/// Face whose requests have spans.
#[derive(Clone)]
pub(crate) struct Traced(pub(crate) Face);

impl Service<RoleServer> for Traced {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let span = self.span(&request, &context);
        let prompt = if span.is_disabled() { None } else { prompt(&request) };
        let serving = Box::pin(Service::handle_request(&self.0, request, context));
        let answer = serving.instrument(span.span().clone()).await;
        match &answer {
            Ok(ServerResult::CustomResult(result)) if result.0["isError"] == true => {
                span.failed("tool_error");
            }
            Ok(_) => {
                if let Some(prompt) = prompt {
                    span.of_prompt(&prompt);
                }
            }
            Err(error) => span.refused(i64::from(error.code.0)),
        }
        answer
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}

impl Traced {
    fn span(&self, request: &ClientRequest, context: &RequestContext<RoleServer>) -> McpSpan {
        let method = match request {
            ClientRequest::CustomRequest(request) => relayed::method(&request.method),
            request => Some(request.method()),
        };
        let (parent, state) = (context.meta.get_traceparent(), context.meta.get_tracestate());
        let span = McpSpan::served(method, parent, state);
        if span.is_disabled() {
            return span;
        }
        span.of_tenant(&self.0.tenant);
        let protocol = context.protocol_version();
        let is_networked = context.extensions.get::<Parts>().is_some();
        span.speaks(protocol.as_ref().map_or("", ProtocolVersion::as_str), is_networked);
        if let NumberOrString::Number(id) = context.id {
            span.of_request(id);
        }
        span
    }
}

fn prompt(request: &ClientRequest) -> Option<String> {
    let ClientRequest::CustomRequest(request) = request else { return None };
    let name = request.params.as_ref()?.get("name").and_then(Value::as_str)?;
    (relayed::method(&request.method) == Some(GET_PROMPT)).then(|| name.to_owned())
}
