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

/// Adds a text to messages that only load tools, because models take such a message for the end of their turn.
pub(super) fn tell_loaded(messages: &mut [Value]) {
    for message in messages.iter_mut().filter(|message| only_loads(message)) {
        if let Some(content) = message["content"].as_array_mut() {
            content.push(json!({ "type": "text", "text": "Tool loaded." }));
        }
    }
}

/// Returns true for a message of the user with results of tools that hold references and nothing else.
fn only_loads(message: &Value) -> bool {
    let is_reference = |item: &Value| item["type"] == "tool_reference";
    let loads = |block: &Value| block["type"] == "tool_result" && holds_only(block, is_reference);
    message["role"] == "user" && holds_only(message, loads)
}

/// Returns true if all of a content's items are such, and there is one.
fn holds_only(holder: &Value, is_such: impl Fn(&Value) -> bool) -> bool {
    let items = holder["content"].as_array();
    items.is_some_and(|items| !items.is_empty() && items.iter().all(is_such))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: &Value) -> Value {
        json!({ "type": "tool_result", "tool_use_id": "c1", "content": content })
    }

    #[test]
    fn only_messages_that_load_tools_and_do_nothing_else_get_a_text() {
        let reference = json!({ "type": "tool_reference", "tool_name": "git__log" });
        let said = json!({ "type": "text", "text": "Found." });
        let loading = result(&json!([reference, reference]));
        let mut messages = [json!({ "role": "user", "content": [loading, loading] })];
        tell_loaded(&mut messages);
        let told = json!({ "type": "text", "text": "Tool loaded." });
        assert_eq!(messages, [json!({ "role": "user", "content": [loading, loading, told] })]);
        let others = [
            json!({ "role": "user", "content": [loading, said] }),
            json!({ "role": "user", "content": [loading, result(&json!("ok"))] }),
            json!({ "role": "user", "content": [result(&json!([reference, said]))] }),
            json!({ "role": "user", "content": [result(&json!([]))] }),
            json!({ "role": "user", "content": [] }),
            json!({ "role": "user", "content": "Go." }),
            json!({ "role": "assistant", "content": [loading] }),
            json!(null),
        ];
        for other in others.iter().chain(&messages) {
            let mut sent = [other.clone()];
            tell_loaded(&mut sent);
            assert_eq!(&sent[0], other);
        }
    }
}
