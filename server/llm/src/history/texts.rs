//! Texts of a history that the model reads, to count their tokens.

use serde_json::Value;

use super::snapshot::is_snapshot;

/// Keys of what the model does not read as text: identifiers, marks, and data of images and files.
const SKIPPED: [&str; 20] = [
    "type",
    "role",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "toolUseId",
    "status",
    "jsonrpc",
    "method",
    "cache_control",
    "signature",
    "thoughtSignature",
    "encrypted_content",
    "data",
    "file_data",
    "image_url",
    "media_type",
    "mimeType",
    "detail",
];

/// Keys of objects that the model reads as JSON: arguments, results and definitions.
const AS_JSON: [&str; 9] = [
    "input",
    "args",
    "arguments",
    "response",
    "structuredContent",
    "tools",
    "tool",
    "definition",
    "parameters",
];

/// Returns the texts of all messages, in their order: what was said, names and arguments of calls, results, and
/// definitions. Images and files are none, and snapshots are no messages.
#[must_use]
pub fn texts(messages: &[Value]) -> Vec<String> {
    let mut texts = Vec::new();
    let sent = messages.iter().filter(|message| !is_snapshot(message));
    sent.for_each(|message| collect(message, &mut texts));
    texts
}

/// Adds the texts of a value. The recursion is as deep as the value, which its parser bounds.
fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => {
            for (key, inner) in fields {
                let is_json = AS_JSON.contains(&key.as_str()) && !inner.is_string();
                if is_json && !inner.is_null() {
                    texts.push(inner.to_string());
                } else if !SKIPPED.contains(&key.as_str()) {
                    collect(inner, texts);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_model_reads_is_text_in_every_api() {
        let chat = vec![
            json!({ "role": "assistant", "content": "so", "tool_calls": [
                { "id": "1", "type": "function",
                  "function": { "name": "look", "arguments": "{\"x\":1}" } }] }),
            json!({ "role": "tool", "tool_call_id": "1", "content": "found" }),
        ];
        let anthropic = vec![
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "so", "cache_control": { "type": "ephemeral" } },
                { "type": "tool_use", "id": "1", "name": "look", "input": { "x": 1 } }] }),
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": "found" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png",
                                               "data": "iVBORw0" } }] }),
        ];
        let responses = vec![
            json!({ "type": "message", "role": "assistant", "content": [
                { "type": "output_text", "text": "so" }] }),
            json!({ "type": "function_call", "call_id": "1", "name": "look",
                    "arguments": "{\"x\":1}" }),
            json!({ "type": "function_call_output", "call_id": "1", "output": "found" }),
        ];
        let gemini = vec![
            json!({ "role": "model", "parts": [
                { "text": "so" }, { "functionCall": { "name": "look", "args": { "x": 1 } } }] }),
            json!({ "role": "user", "parts": [{ "text": "found" }] }),
        ];
        for messages in [chat, anthropic, responses, gemini] {
            let mut read = texts(&messages);
            read.sort();
            assert_eq!(read, ["found", "look", "so", "{\"x\":1}"], "{messages:?}");
        }
    }

    #[test]
    fn a_snapshot_is_no_message() {
        let history = super::super::scan(&[json!({ "role": "user", "content": "go" })], None);
        assert_eq!(texts(&[history.snapshot(), json!(7), json!(null)]), Vec::<String>::new());
    }
}
