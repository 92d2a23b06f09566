//! Additions in Anthropic's Messages API: `tool_addition` in a system message amid the conversation.

use serde_json::{Value, json};

use super::plan::Defined;

/// Betas that requests with tools amid the conversation need: changes of tools, and tools that are defined there. They
/// are named from the first request on, because betas are a part of what the provider caches by.
pub(super) const BETAS: [&str; 2] =
    ["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"];

/// Adds tools behind the messages. The API takes no two system messages in a row, so that they join one of the agent's.
pub(super) fn add(sent: &mut Vec<Value>, tools: &[Defined]) {
    let blocks = tools.iter().map(|tool| {
        json!({
            "type": "tool_addition",
            "tool": { "type": "tool_definition", "definition": tool.definition },
        })
    });
    match sent.last_mut().filter(|last| last["role"] == "system") {
        Some(last) => {
            let mut content = match last["content"].take() {
                Value::Array(content) => content,
                Value::String(text) => vec![json!({ "type": "text", "text": text })],
                _ => Vec::new(),
            };
            content.extend(blocks);
            last["content"] = content.into();
        }
        None => sent.push(json!({ "role": "system", "content": blocks.collect::<Vec<_>>() })),
    }
}
