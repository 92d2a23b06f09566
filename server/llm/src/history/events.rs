//! Events in one entry of a history, for every supported API: the speaker, the tools found, the calls made, and their
//! outcomes.

use std::borrow::Cow;

use serde_json::Value;

use super::reading::{blocks, changed_tool, field, first, items, name, says_error, text};
use crate::{SEARCH_TOOL_NAME, envelope};

/// One event in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// The entry belongs to the model or to another speaker.
    Spoke { model: bool },
    /// A tool's definition was loaded.
    Found { tool: &'a str },
    /// The answer of a call refers to a tool.
    Referred { key: Option<String>, tool: &'a str },
    /// The model called a tool, by itself or in an envelope. The key pairs the call with its answer. Without a key, the
    /// next answer belongs to it.
    Called { key: Option<String>, tool: Cow<'a, str> },
    /// A call ended. The content is its answer; it may load tools if it can be what the agent answers to Toolgate's search.
    Answered { key: Option<String>, failed: bool, content: &'a Value, may_load: bool },
}

/// Returns the events of one message, Responses item or JSON-RPC message. Other values have none.
pub(super) fn read(entry: &Value) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    let kind = text(field(entry, "type"));
    if responses_item(&mut events, kind, entry) {
        return events;
    }
    if !text(field(entry, "role")).is_empty() {
        message(&mut events, entry);
    } else if entry.get("method").is_some() || entry.get("jsonrpc").is_some() {
        json_rpc(&mut events, entry);
    } else if kind.is_empty() && field(entry, "content").is_array() {
        mcp_result(&mut events, None, entry);
    }
    events
}

fn responses_item<'a>(events: &mut Vec<Event<'a>>, kind: &str, item: &'a Value) -> bool {
    match kind {
        "function_call" | "custom_tool_call" => {
            events.push(Event::Spoke { model: true });
            let key = key(field(item, "call_id"));
            called(events, key, field(item, "name"), field(item, "arguments"));
        }
        "function_call_output" | "custom_tool_call_output" => {
            events.push(Event::Spoke { model: false });
            let content = field(item, "output");
            let failed = says_error(content);
            let key = key(field(item, "call_id"));
            events.push(Event::Answered { key, failed, content, may_load: true });
        }
        "mcp_call" => hosted_mcp_call(events, item),
        "tool_search_call" | "reasoning" => events.push(Event::Spoke { model: true }),
        // These occur among the model's items and among the client's; they belong to neither's turn.
        "tool_search_output" => loaded_tools(events, item),
        // Only the agent's author adds tools.
        "additional_tools" if is_authors(item) => loaded_tools(events, item),
        "additional_tools" => {}
        _ => return false,
    }
    true
}

fn hosted_mcp_call<'a>(events: &mut Vec<Event<'a>>, item: &'a Value) {
    events.push(Event::Spoke { model: true });
    called_by_provider(events, item);
    let failed = !field(item, "error").is_null() || text(field(item, "status")) == "failed";
    let content = field(item, "output");
    if failed || !content.is_null() {
        let key = key(field(item, "id"));
        events.push(Event::Answered { key, failed, content, may_load: false });
    }
}

fn loaded_tools<'a>(events: &mut Vec<Event<'a>>, item: &'a Value) {
    for tool in items(field(item, "tools")) {
        if text(field(tool, "type")) == "namespace" {
            for inner in items(field(tool, "tools")) {
                found(events, field(inner, "name"));
            }
        } else {
            found(events, field(tool, "name"));
        }
    }
}

fn message<'a>(events: &mut Vec<Event<'a>>, entry: &'a Value) {
    let role = text(field(entry, "role"));
    let content = field(entry, "content");
    events.push(Event::Spoke { model: matches!(role, "assistant" | "model") });
    for part in blocks(content) {
        block(events, part, role);
        if role == "system" {
            added_tool(events, part);
        }
    }
    for part in items(field(entry, "parts")) {
        gemini_part(events, part, role);
    }
    for call in items(field(entry, "tool_calls")) {
        if let Some(function) = first(call, ["function", "custom"]) {
            let arguments = field(function, "arguments");
            called(events, key(field(call, "id")), field(function, "name"), arguments);
        }
    }
    if role == "tool" {
        let failed = text(field(entry, "status")) == "error" || says_error(content);
        let key = key(field(entry, "tool_call_id"));
        events.push(Event::Answered { key, failed, content, may_load: true });
    }
}

fn block<'a>(events: &mut Vec<Event<'a>>, block: &'a Value, role: &str) {
    match text(field(block, "type")) {
        "tool_use" => {
            called(events, key(field(block, "id")), field(block, "name"), field(block, "input"));
        }
        "mcp_tool_use" => called_by_provider(events, block),
        "tool_result" | "mcp_tool_result" => tool_result(events, block, role),
        // The provider's own search answers within what the model says. Anybody may have written a user's message.
        "tool_search_tool_result" if role == "assistant" => {
            for reference in items(field(field(block, "content"), "tool_references")) {
                found(events, field(reference, "tool_name"));
            }
        }
        _ => {}
    }
}

fn added_tool<'a>(events: &mut Vec<Event<'a>>, block: &'a Value) {
    let added = changed_tool(block).filter(|_| text(field(block, "type")) == "tool_addition");
    if let Some(added) = added {
        found(events, added.name);
    }
}

fn gemini_part<'a>(events: &mut Vec<Event<'a>>, part: &'a Value, role: &str) {
    if let Some(call) = part.get("functionCall") {
        called(events, key(field(call, "id")), field(call, "name"), field(call, "args"));
    }
    if let Some(answer) = part.get("functionResponse") {
        let response = field(answer, "response");
        let failed = !field(response, "error").is_null();
        // Without an ID, an answer belongs to the next call, whose tool may be another one.
        let named = text(field(answer, "name"));
        let is_search = named == SEARCH_TOOL_NAME || envelope::is_envelope(named);
        let may_load = is_search && role != "model";
        // Gemini's own libraries wrap a text as `result` or `output`.
        let content = first(response, ["result", "output"]).unwrap_or(&Value::Null);
        events.push(Event::Answered { key: key(field(answer, "id")), failed, content, may_load });
    }
}

fn tool_result<'a>(events: &mut Vec<Event<'a>>, block: &'a Value, role: &str) {
    let content = field(block, "content");
    let answered = first(block, ["tool_use_id", "toolUseId"]).unwrap_or(&Value::Null);
    let flag = first(block, ["is_error", "isError"]);
    let failed = flag.map_or_else(|| says_error(content), |flag| *flag != Value::Bool(false));
    // The agent answers Toolgate's search in a message of the user; what the model and MCP servers say is text.
    let may_load = role == "user" && text(field(block, "type")) == "tool_result";
    for item in items(content).iter().filter(|_| may_load && !failed) {
        let tool = name(field(item, "tool_name"));
        if text(field(item, "type")) == "tool_reference" && !tool.is_empty() {
            events.push(Event::Referred { key: key(answered), tool });
        }
    }
    events.push(Event::Answered { key: key(answered), failed, content, may_load });
}

fn json_rpc<'a>(events: &mut Vec<Event<'a>>, entry: &'a Value) {
    let id = match field(entry, "id") {
        Value::String(id) => Some(format!("json-rpc:{id}")),
        Value::Number(id) if !id.is_f64() => Some(format!("json-rpc:{id}")),
        _ => None,
    };
    if text(field(entry, "method")) == "tools/call" {
        events.push(Event::Spoke { model: true });
        let params = field(entry, "params");
        called(events, id, field(params, "name"), field(params, "arguments"));
    } else if !field(entry, "error").is_null() {
        events.push(Event::Spoke { model: false });
        let content = &Value::Null;
        events.push(Event::Answered { key: id, failed: true, content, may_load: false });
    } else if let Some(result) = entry.get("result") {
        mcp_result(events, id, result);
    }
}

fn mcp_result<'a>(events: &mut Vec<Event<'a>>, key: Option<String>, result: &'a Value) {
    events.push(Event::Spoke { model: false });
    let flag = first(result, ["isError", "is_error"]);
    let failed = flag.is_some_and(|flag| *flag != Value::Bool(false));
    let content = field(result, "content");
    events.push(Event::Answered { key, failed, content, may_load: true });
}

fn called<'a>(
    events: &mut Vec<Event<'a>>,
    key: Option<String>,
    tool: &'a Value,
    arguments: &'a Value,
) {
    let tool = name(tool);
    if tool.is_empty() {
        return;
    }
    let tool = match envelope::open(arguments) {
        Ok(named) if envelope::is_envelope(tool) => Cow::Owned(name(&named.name.into()).to_owned()),
        _ => Cow::Borrowed(tool),
    };
    if !tool.is_empty() {
        events.push(Event::Called { key, tool });
    }
}

/// Adds a call that the provider made to an MCP server. It is never an envelope. A tool that is named like Toolgate's search
/// is left out: no MCP server of Toolgate's has it, and the name of a server is the agent's choice and says nothing.
fn called_by_provider<'a>(events: &mut Vec<Event<'a>>, call: &'a Value) {
    let tool = name(field(call, "name"));
    if !tool.is_empty() && tool != SEARCH_TOOL_NAME {
        let tool = Cow::Borrowed(tool);
        events.push(Event::Called { key: key(field(call, "id")), tool });
    }
}

/// Returns true if an item is of the agent's author.
pub(crate) fn is_authors(item: &Value) -> bool {
    matches!(text(field(item, "role")), "developer" | "system")
}

fn found<'a>(events: &mut Vec<Event<'a>>, tool: &'a Value) {
    let tool = name(tool);
    if !tool.is_empty() {
        events.push(Event::Found { tool });
    }
}

fn key(id: &Value) -> Option<String> {
    Some(text(id)).filter(|id| !id.is_empty()).map(ToOwned::to_owned)
}
