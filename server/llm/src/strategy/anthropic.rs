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

/// Puts the texts of messages with references where models don't take them for a turn of the user's.
pub(super) fn settle_references(messages: &mut [Value]) {
    messages.iter_mut().for_each(settle_texts);
    tell_loaded(messages);
}

/// Puts the texts of one message with references where models don't take them for a turn of the user's.
pub(super) fn settle_texts(message: &mut Value) {
    let refers = |block: &Value| holds_any(block, is_reference);
    if message["role"] == "user" && holds_any(message, |block| is_result(block) && refers(block)) {
        move_texts(message);
    }
}

/// Moves a message's texts into its last result that holds no references; one that does takes no text beside them.
fn move_texts(message: &mut Value) {
    let Some(content) = message["content"].as_array_mut() else { return };
    let takes = |block: &Value| is_result(block) && !holds_any(block, is_reference);
    if !content.iter().any(takes) {
        return;
    }
    let texts: Vec<Value> = content.extract_if(.., |block| block["type"] == "text").collect();
    let Some(result) = content.iter_mut().rfind(|block| takes(block)) else { return };
    let mut items = match result["content"].take() {
        Value::Array(items) => items,
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    };
    items.extend(texts);
    result["content"] = items.into();
}

/// Adds a text to messages that only load tools, because models take such a message for the end of their turn.
fn tell_loaded(messages: &mut [Value]) {
    for message in messages.iter_mut().filter(|message| only_loads(message)) {
        if let Some(content) = message["content"].as_array_mut() {
            content.push(json!({ "type": "text", "text": "Tool loaded." }));
        }
    }
}

/// Returns true for a message of the user with results of tools that hold references and nothing else.
fn only_loads(message: &Value) -> bool {
    let loads = |block: &Value| is_result(block) && holds_only(block, is_reference);
    message["role"] == "user" && holds_only(message, loads)
}

fn is_reference(item: &Value) -> bool {
    item["type"] == "tool_reference"
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

/// Returns true if one of a content's items is such.
fn holds_any(holder: &Value, is_such: impl Fn(&Value) -> bool) -> bool {
    holder["content"].as_array().is_some_and(|items| items.iter().any(is_such))
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
    fn a_text_beside_references_moves_to_the_last_result_that_takes_it() {
        let reference = json!({ "type": "tool_reference", "tool_name": "git__log" });
        let text = |text: &str| json!({ "type": "text", "text": text });
        let loading = result(&json!([reference]));
        let user = |content: &[&Value]| json!({ "role": "user", "content": content });
        let mut messages =
            [user(&[&result(&json!("a")), &result(&json!("ok")), &loading, &text("And now?")])];
        settle_references(&mut messages);
        let moved = result(&json!([text("ok"), text("And now?")]));
        assert_eq!(messages, [user(&[&result(&json!("a")), &moved, &loading])]);
        for other in [
            user(&[&loading, &text("And now?")]),
            user(&[&result(&json!("ok")), &text("And now?")]),
            json!({ "role": "assistant", "content": [result(&json!("ok")), loading, text("x")] }),
        ] {
            let mut sent = [other.clone()];
            settle_references(&mut sent);
            assert_eq!(sent, [other]);
        }
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
