//! The model's last answer in a conversation, before the message that a turn is about.

use serde_json::Value;

use toolgate_llm::history::{is_snapshot, scan, texts};
use toolgate_routing::router::intent::Intent;

/// Roles of entries that neither the user nor the model wrote.
const INSTRUCTIONS: [&str; 2] = ["system", "developer"];

/// Roles of the model's entries.
const MODEL: [&str; 2] = ["assistant", "model"];

/// Returns what the model said last before a message, which may be the last entry of the conversation; empty if the
/// message is the first. Returns `None` if that is unknown, or if the model is amid its work.
pub(super) fn before(message: &[Intent], messages: &[Value]) -> Option<String> {
    let [message] = message else { return None };
    let (last, rest) = messages.split_last()?;
    let is_message =
        role(last) == "user" && is_text(last) && said(last).trim() == message.text.trim();
    let mut said_last: Vec<String> = Vec::new();
    for entry in if is_message { rest } else { messages }.iter().rev() {
        if is_snapshot(entry) || !scan(std::slice::from_ref(entry), None).calls.is_empty() {
            return found(&said_last);
        } else if MODEL.contains(&role(entry)) {
            said_last.push(said(entry));
        } else if entry["type"] != "reasoning" && !INSTRUCTIONS.contains(&role(entry)) {
            return found(&said_last);
        }
    }
    Some(said_last.join("\n"))
}

/// Returns the texts of the model's last entries; `None` if the entry before the message is none of these.
fn found(said_last: &[String]) -> Option<String> {
    (!said_last.is_empty()).then(|| said_last.join("\n"))
}

fn role(entry: &Value) -> &str {
    entry["role"].as_str().unwrap_or_default()
}

fn said(entry: &Value) -> String {
    texts(std::slice::from_ref(entry)).join("\n")
}

/// Returns true if an entry has nothing but text: no image, file or result.
fn is_text(entry: &Value) -> bool {
    let has_text = |part: &Value| part["text"].is_string();
    match [&entry["content"], &entry["parts"]].map(|content| content.as_array()) {
        [Some(parts), _] | [None, Some(parts)] => parts.iter().all(has_text),
        [None, None] => entry["content"].is_string() || has_text(&entry["content"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(messages: &Value) -> Option<String> {
        let message = [Intent::new("thanks".to_owned(), 1.0)];
        before(&message, messages.as_array().expect("a list"))
    }

    #[test]
    fn the_last_answer_is_found_in_every_api() {
        let thanks = json!({ "role": "user", "content": "thanks" });
        let call = json!({ "role": "assistant", "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "t", "arguments": "{}" } }] });
        let result = json!({ "role": "tool", "tool_call_id": "1", "content": "ok?" });
        let done = json!({ "role": "assistant", "content": "Done." });
        for messages in [
            json!([{ "role": "user", "content": "go" }, call, result, done, thanks]),
            json!([{ "role": "user", "content": "go" }, done]),
            json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] },
                { "role": "assistant", "content": [{ "type": "text", "text": "Done." }] },
                { "role": "user", "content": [{ "type": "text", "text": "thanks" }] }]),
            json!([{ "type": "function_call_output", "call_id": "1", "output": "ok?" },
                { "type": "reasoning", "summary": [] },
                { "type": "message", "role": "assistant",
                    "content": [{ "type": "output_text", "text": "Done." }] },
                { "role": "developer", "content": "Be kind?" }, thanks]),
            json!([{ "role": "model", "parts": [{ "text": "Done." }] },
                { "role": "user", "parts": [{ "text": "thanks" }] }]),
        ] {
            assert_eq!(of(&messages).as_deref(), Some("Done."), "{messages}");
        }
        assert_eq!(of(&json!([{ "role": "system", "content": "x" }, thanks])).as_deref(), Some(""));
    }

    #[test]
    fn where_the_answer_is_unknown_there_is_none() {
        let thanks = json!({ "role": "user", "content": "thanks" });
        let call =
            json!({ "type": "function_call", "call_id": "1", "name": "t", "arguments": "{}" });
        let result = json!({ "type": "function_call_output", "call_id": "1", "output": "ok" });
        for messages in [
            json!([]),
            json!([{ "role": "user", "content": "go" }, thanks]),
            json!([thanks, call, result]),
            json!([call, result, thanks]),
            json!([{ "role": "assistant", "content": "Done." }, { "role": "user", "content": [
                { "type": "text", "text": "thanks" }, { "type": "image", "source": {} }] }]),
        ] {
            assert_eq!(of(&messages), None, "{messages}");
        }
        let history = scan(std::slice::from_ref(&thanks), None).snapshot();
        assert_eq!(of(&json!([history, thanks])), None, "a compaction left the answer out");
    }

    #[test]
    fn several_intents_have_no_answer_before_them() {
        let two = [Intent::new("a".to_owned(), 1.0), Intent::new("b".to_owned(), 1.0)];
        assert_eq!(before(&two, &[json!({ "role": "assistant", "content": "Done." })]), None);
    }
}
