//! An agent's loop over Anthropic's Messages API. A scripted model stands in for the API: it searches for a tool, calls
//! it with mistakes, corrects the call as the refusal says, and answers.
//!
//!     cargo run --example agent
//!
//! It needs a service at TOOLGATE_TARGET (127.0.0.1:7070 if unset) and the repository's `tests/data/servers` under the
//! current folder.
#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use std::error::Error;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_client::history::{self, scan, strip};
use toolgate_client::{
    Client, ClientOptions, DEFAULT_TARGET, SEARCH_TOOL_NAME, calls, intent, registration,
    rendered_tools, tool_error, v1,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::var("TOOLGATE_TARGET").unwrap_or(DEFAULT_TARGET.into());
    let options = ClientOptions { tenant: "agent".into(), ..Default::default() };
    let client = Client::connect(&target, options).await?;
    let listed = std::fs::read("tests/data/servers/slack.json")?;
    let registering = client.with_deadline(Duration::from_secs(60));
    registering.register_server(registration("slack", listed)).await?;

    let mut conversation = Conversation::new(client);
    let answer = conversation.say("tell the team that I'll be late, and put a clock on it").await?;
    for message in &conversation.messages {
        println!("{message}");
    }
    println!("{answer}");
    Ok(())
}

/// State that is kept from one turn to the next.
pub(crate) struct Conversation {
    client: Client,
    /// The model that answers.
    pub(crate) model: ScriptedModel,
    /// The messages, in the format of the provider's API.
    pub(crate) messages: Vec<Value>,
    handle: String,
}

impl Conversation {
    /// Creates a conversation without messages.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            model: ScriptedModel::default(),
            messages: Vec::new(),
            handle: String::new(),
        }
    }

    /// Adds the user's message, and runs the model's calls until it answers in text.
    pub(crate) async fn say(&mut self, text: &str) -> Result<String, Box<dyn Error>> {
        self.messages.push(json!({ "role": "user", "content": text }));
        loop {
            // Preconditions need the tools that were discovered and called.
            let mut state = history::state(&scan(&self.messages, None));
            state.scopes = vec!["chat:write".into()];
            let tools = self.route(text, &state).await?;
            let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            let answer = self.model.create(&json!({
                "system": "Be brief.",
                "tools": tools,
                // References to tools that this request does not define are removed.
                "messages": strip(&self.messages, &names, true).messages,
            }));
            self.messages.push(json!({ "role": "assistant", "content": answer }));
            let mut results = Vec::new();
            for block in answer.as_array().into_iter().flatten() {
                if block["type"] == "tool_use" {
                    results.push(self.result(block, &state).await?);
                }
            }
            if results.is_empty() {
                return Ok(answer[0]["text"].as_str().unwrap_or_default().to_owned());
            }
            self.messages.push(json!({ "role": "user", "content": results }));
        }
    }

    /// Returns the tools for this turn: the few with schemas, and the search that makes any other tool callable.
    async fn route(
        &mut self,
        text: &str,
        state: &v1::AgentState,
    ) -> Result<Vec<Value>, Box<dyn Error>> {
        let options = v1::RouteOptions {
            top_k: Some(1),
            deferral: v1::DeferralMode::Always.into(),
            ..Default::default()
        };
        let request = v1::RouteRequest {
            intents: vec![intent(text)],
            state: Some(state.clone()),
            active_set_handle: self.handle.clone(),
            options: Some(options),
            render: Some(v1::RenderOptions {
                format: v1::ToolFormat::Anthropic.into(),
                search_tool: true,
                ..Default::default()
            }),
            ..Default::default()
        };
        let turn = self.client.route(request).await?;
        self.handle = turn.active_set_handle;
        Ok(rendered_tools(turn.rendered.as_ref())?)
    }

    /// Returns the tool result for one call of the model.
    async fn result(
        &mut self,
        block: &Value,
        state: &v1::AgentState,
    ) -> Result<Value, Box<dyn Error>> {
        let (content, failed) = if block["name"] == SEARCH_TOOL_NAME {
            let request = v1::SearchToolsRequest {
                active_set_handle: self.handle.clone(),
                state: Some(state.clone()),
                ..Default::default()
            };
            let found = self.client.answer_search(&block["input"], request).await?;
            // The next `route` keeps the found tools, with their schemas.
            self.handle = found.handle;
            (found.text, found.failed)
        } else {
            self.gated(calls::from_anthropic(block)?, state).await?
        };
        let done = json!({ "type": "tool_result", "tool_use_id": block["id"] });
        let mut result = done.as_object().cloned().unwrap_or_default();
        result.insert("content".into(), content.into());
        result.insert("is_error".into(), failed.into());
        Ok(result.into())
    }

    /// Runs a call that is allowed. For a refused call, returns the advice for the model instead.
    async fn gated(
        &self,
        call: v1::RequestedCall,
        state: &v1::AgentState,
    ) -> Result<(String, bool), Box<dyn Error>> {
        let arguments = call.arguments_json.clone();
        let request = v1::GateRequest {
            active_set_handle: self.handle.clone(),
            calls: vec![call],
            state: Some(state.clone()),
            ..Default::default()
        };
        let answer = self.client.gate(request).await?;
        let verdict = answer.verdicts.first().ok_or("a verdict for each call")?;
        Ok(match tool_error(verdict) {
            Some(refusal) => (refusal.to_string(), true),
            // A real agent would call the MCP server here.
            None => (format!("{}/{} ran with {arguments}", verdict.server, verdict.name), false),
        })
    }
}

/// A model that returns scripted answers and ignores its input. A real one is behind the provider's API.
#[derive(Default)]
pub(crate) struct ScriptedModel {
    /// Requests that the model received.
    pub(crate) requests: Vec<Value>,
}

impl ScriptedModel {
    fn create(&mut self, request: &Value) -> Value {
        let tools = request["tools"].as_array().map_or(0, Vec::len);
        self.requests.push(request.clone());
        let line = self.requests.len();
        let uses = |name: &str, input: Value| {
            let id = format!("toolu_{line}");
            json!([{ "type": "tool_use", "id": id, "name": name, "input": input }])
        };
        let reaction = "mcp__slack__slack_add_reaction";
        match line {
            1 => uses(
                "mcp__slack__slack_post_message",
                json!({ "channel_id": "C1", "text": "I'll be late" }),
            ),
            2 => uses(SEARCH_TOOL_NAME, json!({ "query": "add an emoji reaction to a message" })),
            3 => uses(reaction, json!({ "channel_id": "C1", "emoji": "clock1" })),
            4 => uses(
                reaction,
                json!({ "channel_id": "C1", "timestamp": "1.2", "reaction": "clock1" }),
            ),
            _ => json!([{ "type": "text", "text": format!("Done, with {tools} tools defined.") }]),
        }
    }
}
