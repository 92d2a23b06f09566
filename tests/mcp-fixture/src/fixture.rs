//! The server as the library knows one.
#![expect(deprecated, reason = "both eras: logging and sampling are deprecated in the newer")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

use crate::changes::{Change, Changes};
use crate::contents::{complete, text};
use crate::{prompts, questions, resources, tools};

/// One connection to the fixture.
pub(crate) struct Fixture {
    changes: Changes,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { changes: Changes::new() }
    }

    /// Another connection to the same server.
    pub(crate) fn for_connection(&self) -> Self {
        Self { changes: self.changes.for_connection() }
    }

    async fn trigger(
        &self,
        change: Change,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        self.changes.announce(change);
        // Clients of the older era have no subscriptions.
        if context.meta.protocol_version().is_none() {
            let _ = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::Prompts => context.peer.notify_prompt_list_changed().await,
            };
        }
        text("Changed.")
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("toolgate-mcp-fixture", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        match request.name.as_ref() {
            "test_missing_capability" if capabilities.sampling.is_none() => {
                let required = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(required));
            }
            "test_missing_capability" => return Ok(text("This client declares sampling.")),
            "test_trigger_tool_change" => return Ok(self.trigger(Change::Tools, &context).await),
            "test_trigger_prompt_change" => {
                return Ok(self.trigger(Change::Prompts, &context).await);
            }
            _ => {}
        }
        if let Some(answer) = tools::call(&request) {
            return answer;
        }
        if let Some(answer) = questions::call(&request, &capabilities) {
            return answer;
        }
        match tools::call_with_client(&request, &context).await {
            Some(answer) => answer,
            None => Err(ErrorData::invalid_params(format!("no tool {}", request.name), None)),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list()
    }

    /// The library compares mirrored headers with it.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list()
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list()
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates()
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(ReadResourceResponse::from)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        complete(json!({"completion": {
            "values": ["paris", "park", "party"], "total": 3, "hasMore": false,
        }}))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if context.meta.protocol_version().is_some() {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.changes.accept();
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.follow(&subscription).await;
        Ok(())
    }
}
