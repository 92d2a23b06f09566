//! Spans of hosts' requests: a face whose every request has one, a child of the host's own, but for streams of changes.

use axum::http::request::Parts;
use rmcp::model::{
    CustomRequest, CustomResult, DiscoverResult, ErrorData, InitializeRequestParams,
    InitializeResult, NumberOrString, ProtocolVersion, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
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

impl ServerHandler for Traced {
    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.0.on_roots_list_changed(context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let span = self.span(Some("initialize"), &context);
        self.0.listens();
        let answer = self.0.initialize(request, context).instrument(span.span().clone()).await;
        ended(&span, answer.map(|answer| self.0.with_older_tasks(answer)))
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let span = self.span(Some("server/discover"), &context);
        ended(&span, self.0.discover(context).instrument(span.span().clone()).await)
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let span = self.span(Some("ping"), &context);
        ended(&span, self.0.ping(context).instrument(span.span().clone()).await)
    }

    #[expect(deprecated, reason = "both eras: logging is deprecated in the newer")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let span = self.span(Some("logging/setLevel"), &context);
        ended(&span, self.0.set_level(request, context).instrument(span.span().clone()).await)
    }

    /// Has no span: it ends when the host leaves.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(subscription).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let span = self.span(Some("resources/subscribe"), &context);
        ended(&span, self.0.subscribe(request, context).instrument(span.span().clone()).await)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let span = self.span(Some("resources/unsubscribe"), &context);
        ended(&span, self.0.unsubscribe(request, context).instrument(span.span().clone()).await)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let span = self.span(relayed::method(&request.method), &context);
        let prompt = if span.is_disabled() { None } else { prompt(&request) };
        let serving = Box::pin(self.0.result(request, &context));
        let answer = serving.instrument(span.span().clone()).await;
        match &answer {
            Ok(result) if result.is_true("isError") => span.failed("tool_error"),
            Ok(_) => {
                if let Some(prompt) = prompt {
                    span.of_prompt(&prompt);
                }
            }
            Err(_) => {}
        }
        let placed = answer.and_then(|result| self.0.placed(result, &context));
        ended(&span, placed)
    }
}

impl Traced {
    fn span(&self, method: Option<&str>, context: &RequestContext<RoleServer>) -> McpSpan {
        let parent = context.meta.get_traceparent();
        let span = McpSpan::served(method, parent, context.meta.get_tracestate());
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

/// Records the error of an answer, if it is one.
fn ended<T>(span: &McpSpan, answer: Result<T, ErrorData>) -> Result<T, ErrorData> {
    if let Err(error) = &answer {
        span.refused(i64::from(error.code.0));
    }
    answer
}

fn prompt(request: &CustomRequest) -> Option<String> {
    let name = request.params.as_ref()?.get("name").and_then(Value::as_str)?;
    (relayed::method(&request.method) == Some(GET_PROMPT)).then(|| name.to_owned())
}
