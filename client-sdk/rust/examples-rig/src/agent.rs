//! The loop: route, ask the model, gate its calls, and again until it answers in words.

use std::error::Error;

use rig_core::completion::{CompletionRequest, ToolDefinition};
use rig_core::driver::DynModel;
use rig_core::message::{Message, ToolCall, ToolName, ToolResult, ToolResultContent};
use rig_core::operation::Completion;
use serde_json::Value;
use toolgate_client::{Client, SEARCH_TOOL, SEARCH_TOOL_NAME, calls, intent, tool_error, v1};

/// One conversation.
pub struct Agent {
    client: Client,
    model: DynModel<Completion>,
    messages: Vec<Message>,
    handle: String,
    state: v1::AgentState,
    /// What became of each call, in its order.
    pub outcomes: Vec<String>,
}

impl Agent {
    /// A conversation that has not begun.
    pub fn new(client: Client, model: DynModel<Completion>) -> Self {
        let state = v1::AgentState { scopes: vec!["chat:write".into()], ..Default::default() };
        let (messages, outcomes) = (Vec::new(), Vec::new());
        Self { client, model, messages, handle: String::new(), state, outcomes }
    }

    /// Hands the user's words to the model, and runs its calls until it answers in words.
    pub async fn say(&mut self, text: &str) -> Result<String, Box<dyn Error>> {
        self.messages.push(Message::user(text));
        loop {
            let tools = self.route(text).await?;
            let (last, before) = self.messages.split_last().ok_or("a message to answer")?;
            let request =
                CompletionRequest::new(last.clone()).messages(before.to_vec()).tools(tools);
            let answer = self.model.call(request).await?;
            self.messages.extend(answer.message());
            let mut results = Vec::new();
            for call in answer.tool_calls() {
                results.push(self.result(call).await?);
            }
            if results.is_empty() {
                return Ok(answer.text());
            }
            self.messages.push(Message::tool_results(results));
        }
    }

    /// The few tools that fit, and the search that makes any other of them callable.
    async fn route(&mut self, text: &str) -> Result<Vec<ToolDefinition>, Box<dyn Error>> {
        let options = v1::RouteOptions {
            top_k: Some(1),
            deferral: v1::DeferralMode::Always.into(),
            ..Default::default()
        };
        let request = v1::RouteRequest {
            intents: vec![intent(text)],
            state: Some(self.state.clone()),
            active_set_handle: self.handle.clone(),
            options: Some(options),
            ..Default::default()
        };
        let turn = self.client.route(request).await?;
        self.handle = turn.active_set_handle;
        [SEARCH_TOOL.clone()].iter().chain(&turn.active_tools).map(defined).collect()
    }

    /// The tool result for one call of the model's.
    async fn result(&mut self, call: &ToolCall) -> Result<ToolResult, Box<dyn Error>> {
        let arguments = Value::Object(call.function.arguments.clone());
        let (said, failed) = if call.function.name.as_str() == SEARCH_TOOL_NAME {
            let request = v1::SearchToolsRequest {
                active_set_handle: self.handle.clone(),
                state: Some(self.state.clone()),
                ..Default::default()
            };
            let found = self.client.answer_search(&arguments, request).await?;
            self.handle = found.handle;
            (found.text, found.failed)
        } else {
            self.gated(call, &arguments).await?
        };
        self.outcomes.push(said.clone());
        let content = vec![ToolResultContent::text(said)];
        Ok(if failed { call.error_result(content) } else { call.result(content) })
    }

    /// Runs a call that may run; of another one, says what to do instead.
    async fn gated(
        &mut self,
        call: &ToolCall,
        arguments: &Value,
    ) -> Result<(String, bool), Box<dyn Error>> {
        let name = call.function.name.as_str();
        let request = v1::GateRequest {
            active_set_handle: self.handle.clone(),
            calls: vec![calls::call(name, arguments, call.id.wire())],
            state: Some(self.state.clone()),
            ..Default::default()
        };
        let answer = self.client.gate(request).await?;
        let verdict = answer.verdicts.first().ok_or("a verdict for each call")?;
        if let Some(refusal) = tool_error(verdict) {
            return Ok((refusal.to_string(), true));
        }
        // Here the MCP server would be called. That it was is what preconditions may ask for.
        self.state.calls.push(v1::PriorCall {
            tool: name.to_owned(),
            status: v1::CallStatus::Succeeded.into(),
            ..Default::default()
        });
        Ok((format!("{}/{} ran with {arguments}", verdict.server, verdict.name), false))
    }
}

fn defined(tool: &v1::ActiveTool) -> Result<ToolDefinition, Box<dyn Error>> {
    let parameters = serde_json::from_str(&tool.input_schema_json)?;
    Ok(ToolDefinition::new(ToolName::new(&tool.model_name)?, &tool.description, parameters))
}
