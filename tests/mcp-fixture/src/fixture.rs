//! The server as the library knows one.
#![expect(deprecated, reason = "both eras: logging and sampling are deprecated in the newer")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, DiscoverRequestMethod, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

use crate::changes::{Change, Changes};
use crate::contents::{complete, text};
use crate::subscribed::Subscribed;
use crate::{prompts, questions, resources, tasks, tools};

/// One connection to the fixture.
pub(crate) struct Fixture {
    changes: Changes,
    subscribed: Subscribed,
    connection: usize,
    tasks: TaskManager,
    /// True if `server/discover` is not known, as before 2026-07-28.
    is_legacy: bool,
}

impl Fixture {
    pub(crate) fn new(is_legacy: bool) -> Self {
        let subscribed = Subscribed::default();
        let connection = subscribed.connection();
        let tasks = TaskManager::new();
        Self { changes: Changes::new(), subscribed, connection, tasks, is_legacy }
    }

    /// Another connection to the same server.
    pub(crate) fn for_connection(&self) -> Self {
        Self {
            changes: self.changes.for_connection(),
            subscribed: self.subscribed.clone(),
            connection: self.subscribed.connection(),
            tasks: self.tasks.clone(),
            is_legacy: self.is_legacy,
        }
    }

    /// Tells everyone who follows a resource that it changed.
    async fn update(&self, request: &CallToolRequestParams) -> CallToolResponse {
        let uri = tools::argument(request, "uri");
        self.subscribed.updated(&uri).await;
        self.changes.announce(Change::Resource(uri));
        text("Changed.")
    }

    /// Asks a client of the older era what a response wants to know, until the tool has its answer.
    async fn asked_directly(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        loop {
            match questions::call(&request, &capabilities)? {
                Ok(CallToolResponse::InputRequired(wanted)) => {
                    let answers = questions::ask_all(context, &self.subscribed, &wanted).await;
                    match answers {
                        Ok(answers) => request.input_responses = Some(answers),
                        Err(error) => return Some(Err(error)),
                    }
                    request.request_state = wanted.request_state;
                }
                answer => return Some(answer),
            }
        }
    }

    async fn trigger(
        &self,
        change: Change,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        self.changes.announce(change.clone());
        // Clients of the older era have no subscriptions.
        if context.meta.protocol_version().is_none() {
            let _ = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::Prompts => context.peer.notify_prompt_list_changed().await,
                Change::Resource(_) => Ok(()),
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
            .enable_tool_list_changed();
        let capabilities =
            if self.is_legacy { capabilities.build() } else { capabilities.enable_tasks().build() };
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("toolgate-mcp-fixture", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        if self.is_legacy {
            return Err(ErrorData::method_not_found::<DiscoverRequestMethod>());
        }
        let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
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
            "test_trigger_resource_update" => return Ok(self.update(&request).await),
            "test_subscriptions" => return Ok(text(json!(self.subscribed.uris()).to_string())),
            "test_open_questions" => return Ok(text(self.subscribed.questions().to_string())),
            "test_late_question" => return questions::late(&context, &self.subscribed).await,
            "test_question_flood" => {
                return Ok(questions::flood(&context, &self.subscribed).await);
            }
            _ => {}
        }
        if let Some(answer) = tools::call(&request) {
            return answer;
        }
        if let Some(answer) = tasks::call(&self.tasks, &request, &capabilities).await {
            return answer;
        }
        let answer = if context.meta.protocol_version().is_none() {
            self.asked_directly(request.clone(), &context).await
        } else {
            questions::call(&request, &capabilities)
        };
        if let Some(answer) = answer {
            return answer;
        }
        match tools::call_with_client(&request, &context, &self.subscribed).await {
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
        mut request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        loop {
            match prompts::get(&request)? {
                GetPromptResponse::InputRequired(wanted)
                    if context.meta.protocol_version().is_none() =>
                {
                    let answers = questions::ask_all(&context, &self.subscribed, &wanted).await?;
                    request.input_responses = Some(answers);
                }
                answer => return Ok(answer),
            }
        }
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

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
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
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.follow(self.connection, &request.uri, context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.unfollow(self.connection, &request.uri);
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
        let resources = subscription.accepted().resource_subscriptions.as_deref();
        let _following = self.subscribed.listen(resources.unwrap_or_default());
        self.changes.follow(&subscription).await;
        Ok(())
    }
}
