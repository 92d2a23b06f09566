//! Texts of a history: what the user said, and what tools returned.

use std::collections::VecDeque;

use serde_json::Value;

use super::events::{Event, read};
use super::reading::{blocks, field, first, text};

/// Number of the user's last messages that are read.
const ASKS: usize = 6;
/// Number of the last results that are read.
const RESULTS: usize = 2;
/// Maximum length of a message of the user, in characters.
const ASK_CHARS: usize = 600;
/// Maximum length of a result, in characters.
const RESULT_CHARS: usize = 300;

/// Last texts of a history, oldest first and cut to a bounded length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The user's messages: texts of entries whose role is `user`, at most 6 of 600 characters.
    pub asks: Vec<String>,
    /// Results of calls that did not fail, at most 2 of 300 characters. A tool's server wrote them, so they are not to
    /// be trusted as the user's words are.
    pub results: Vec<String>,
}

/// Reads the last texts of a history, oldest message first.
#[must_use]
pub fn said(messages: &[Value]) -> Said {
    let mut asks = VecDeque::new();
    let mut results = VecDeque::new();
    // Each entry yields few texts, so the newest entries are enough.
    for entry in messages.iter().rev() {
        if asks.len() < ASKS && text(field(entry, "role")) == "user" {
            // Gemini's messages have `parts`.
            let content = first(entry, ["content", "parts"]).unwrap_or(&Value::Null);
            let ask = joined(content, ASK_CHARS);
            asks.extend((!ask.is_empty()).then_some(ask));
        }
        for event in read(entry).into_iter().rev() {
            if let Event::Answered { failed: false, content, .. } = event
                && results.len() < RESULTS
            {
                let result = joined(content, RESULT_CHARS);
                results.extend((!result.is_empty()).then_some(result));
            }
        }
        if asks.len() == ASKS && results.len() == RESULTS {
            break;
        }
    }
    Said { asks: asks.into_iter().rev().collect(), results: results.into_iter().rev().collect() }
}

/// Returns the texts of a content as one, cut to `limit` characters. Blocks other than texts have none.
fn joined(content: &Value, limit: usize) -> String {
    let is_text = |block: &&Value| {
        matches!(text(field(block, "type")), "text" | "input_text" | "output_text" | "")
    };
    let of_blocks = || {
        let texts = blocks(content).iter().filter(is_text).map(|block| text(field(block, "text")));
        texts.collect::<Vec<_>>().join("\n")
    };
    let whole = content.as_str().map_or_else(of_blocks, str::to_owned);
    whole.trim().chars().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(messages: &Value) -> (Vec<String>, Vec<String>) {
        let said = said(messages.as_array().expect("a list"));
        (said.asks, said.results)
    }

    #[test]
    fn all_formats_are_read_alike() {
        let chat = json!([
            { "role": "system", "content": "You help." },
            { "role": "user", "content": "list the bugs" },
            { "role": "assistant", "tool_calls": [{ "id": "1", "function": { "name": "t" } }] },
            { "role": "tool", "tool_call_id": "1", "content": "BUG-1" },
            { "role": "assistant", "content": "One." },
            { "role": "user", "content": "close it" },
        ]);
        let anthropic = json!([
            { "role": "user", "content": [{ "type": "text", "text": "list the bugs" }] },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "t" }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1",
                "content": [{ "type": "text", "text": "BUG-1" }] }] },
            { "role": "user", "content": "close it" },
        ]);
        let responses = json!([
            { "type": "message", "role": "user",
                "content": [{ "type": "input_text", "text": "list the bugs" }] },
            { "type": "function_call", "call_id": "1", "name": "t", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "1", "output": "BUG-1" },
            { "role": "user", "content": "close it" },
        ]);
        let mcp = json!([
            { "role": "user", "content": { "type": "text", "text": "list the bugs" } },
            { "method": "tools/call", "id": 1, "params": { "name": "t" } },
            { "jsonrpc": "2.0", "id": 1, "result": { "content": [{ "type": "text", "text": "BUG-1" }] } },
            { "role": "user", "content": { "type": "text", "text": "close it" } },
        ]);
        let gemini = json!([
            { "role": "user", "parts": [{ "text": "list the bugs" }] },
            { "role": "model", "parts": [{ "functionCall": { "id": "1", "name": "t", "args": {} } }] },
            { "role": "user", "parts": [{ "functionResponse":
                { "id": "1", "name": "t", "response": { "output": "BUG-1" } } }] },
            { "role": "model", "parts": [{ "text": "One." }] },
            { "role": "user", "parts": [{ "text": "close it" }] },
        ]);
        let wanted = (vec!["list the bugs".to_owned(), "close it".into()], vec!["BUG-1".into()]);
        for messages in [chat, anthropic, responses, mcp, gemini] {
            assert_eq!(of(&messages), wanted, "{messages}");
        }
    }

    #[test]
    fn only_the_newest_are_kept_and_cut_and_errors_are_none() {
        let ask =
            |n: usize| json!({ "role": "user", "content": format!("{n}{}", "ü".repeat(900)) });
        let mut messages: Vec<Value> = (0..9).map(ask).collect();
        for content in ["one", "two", "three", "{\"error\": \"no\"}"] {
            messages.push(json!({ "role": "tool", "content": content }));
        }
        let (asks, results) = of(&Value::Array(messages));
        assert_eq!(results, ["two", "three"]);
        assert!(asks.len() == ASKS && asks[0].starts_with('3'), "{asks:?}");
        assert!(asks.iter().all(|ask| ask.chars().count() == ASK_CHARS));
        assert_eq!(
            of(&json!([1, null, { "role": "user" }, { "role": "user", "content": 3 }])),
            (vec![], vec![])
        );
    }
}
