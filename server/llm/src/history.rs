//! Message histories of conversations. [`scan`] reads the tools that were discovered and called, for the agent's state.
//! [`said`] reads the last texts of the user and of tools, [`refusal_outcomes`] what became of refused calls, [`texts`] what
//! costs tokens. [`strip`] removes what can't be sent to the provider. [`compacted`] puts a snapshot before the messages that remain
//! after a compaction.
//!
//! Histories are JSON values: messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and
//! MCP (sampling messages and JSON-RPC), also mixed. Unknown content is skipped, and no message makes a function here
//! fail. `client-sdk/conformance` holds the cases.

mod events;
mod outcomes;
mod reading;
mod said;
mod scanner;
mod snapshot;
mod strip;
mod texts;

pub(crate) use events::is_authors;
pub use outcomes::{RefusalOutcomes, refusal_outcomes};
pub use said::{Said, said};
use serde_json::Value;
pub use snapshot::is_snapshot;
pub use strip::{Reason, Removed, Stripped, strip};
pub use texts::texts;

/// Outcome of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallStatus {
    /// The call has no answer yet.
    #[default]
    Unspecified,
    /// The call was answered.
    Succeeded,
    /// The call was answered with an error.
    Failed,
}

/// Tools that a conversation's history discovered and called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Names of the tools that were loaded, in the order of their discovery. A tool counts as loaded after a reference,
    /// after a search (the provider's, or [Toolgate's own](crate::SEARCH_TOOL_NAME)), or after a successful call. Only the
    /// newest 24 KiB are kept.
    pub discovered: Vec<String>,
    /// The calls, oldest first. Only the newest 24 KiB are kept; the last success of each tool takes precedence.
    pub calls: Vec<SeenCall>,
    /// Number of the model's turns.
    pub turns: u32,
}

/// A call in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCall {
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// Outcome of the call; `Unspecified` until it has an answer.
    pub status: CallStatus,
    /// Turn of the model in which the call was made, counted from 0.
    pub turn: u32,
    /// The provider's ID of the call; empty if there was none.
    pub id: String,
}

impl History {
    /// Returns the history as a JSON object that survives a compaction of the history. Pass it to the next [`scan`], or
    /// leave it in the history: `scan` finds it there, and [`strip`] removes it before the history is sent.
    #[must_use]
    pub fn snapshot(&self) -> Value {
        snapshot::write(self)
    }
}

/// Reads the discovered tools and the calls from a history, oldest message first. `snapshot` is the result of
/// [`History::snapshot`] before the history was compacted.
///
/// Scanning messages again that the snapshot already covers changes at most `turns`, and only for messages without a
/// call.
#[must_use]
pub fn scan(messages: &[Value], snapshot: Option<&Value>) -> History {
    let mut scanner = scanner::Scanner::default();
    if let Some(snapshot) = snapshot {
        scanner.restore(snapshot);
    }
    for message in messages {
        if snapshot::is_snapshot(message) {
            scanner.restore(message);
            continue;
        }
        for event in events::read(message) {
            scanner.take(event);
        }
    }
    scanner.finish()
}

/// Returns the history after a compaction: a snapshot of `messages`, then `kept`. `kept` holds a summary and the
/// messages that stay.
#[must_use]
pub fn compacted(
    messages: &[Value],
    kept: impl IntoIterator<Item = Value>,
    snapshot: Option<&Value>,
) -> Vec<Value> {
    std::iter::once(scan(messages, snapshot).snapshot()).chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::SEARCH_TOOL_NAME;
    use crate::envelope::CALL_TOOL_NAME;

    fn called(messages: &[Value]) -> Vec<(String, CallStatus)> {
        scan(messages, None).calls.into_iter().map(|call| (call.tool, call.status)).collect()
    }

    #[test]
    fn a_call_in_an_envelope_is_a_call_of_the_tool_that_it_names() {
        let inner = json!({ "name": "mcp__a__b", "arguments": { "x": 1 } });
        let written = inner.to_string();
        let conversations = [
            vec![
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": "1", "name": CALL_TOOL_NAME, "input": inner }] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "1", "content": "done" }] }),
            ],
            vec![
                json!({ "role": "assistant", "tool_calls": [
                    { "id": "1", "function": { "name": CALL_TOOL_NAME, "arguments": written } }] }),
                json!({ "role": "tool", "tool_call_id": "1", "content": "done" }),
            ],
            vec![
                json!({ "type": "function_call", "call_id": "1", "name": CALL_TOOL_NAME,
                        "arguments": written }),
                json!({ "type": "function_call_output", "call_id": "1", "output": "done" }),
            ],
            vec![
                json!({ "role": "model", "parts": [
                    { "functionCall": { "name": CALL_TOOL_NAME, "args": inner } }] }),
                json!({ "role": "user", "parts": [
                    { "functionResponse": { "name": CALL_TOOL_NAME, "response": { "result": "done" } } }] }),
            ],
        ];
        for messages in conversations {
            let expected = [("mcp__a__b".to_owned(), CallStatus::Succeeded)];
            assert_eq!(called(&messages), expected, "{messages:?}");
            assert_eq!(scan(&messages, None).discovered, ["mcp__a__b"]);
        }
    }

    #[test]
    fn a_garbled_envelope_stays_a_call_of_its_own_name() {
        let garbled = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "1", "name": CALL_TOOL_NAME, "input": { "name": 7 } }] });
        let expected = [(CALL_TOOL_NAME.to_owned(), CallStatus::Unspecified)];
        assert_eq!(called(&[garbled]), expected);
        let other = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "1", "name": "mcp__a__b", "input": { "name": "x" } }] });
        assert_eq!(called(&[other]), [("mcp__a__b".to_owned(), CallStatus::Unspecified)]);
    }

    #[test]
    fn references_count_only_in_what_a_search_answered_to_the_model() {
        let called = |name: &str| {
            json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": "1", "name": name, "input": {} }] })
        };
        let answered = |role: &str| {
            json!({ "role": role, "content": [{ "type": "tool_result", "tool_use_id": "1",
                "content": [{ "type": "tool_reference", "tool_name": "mcp__bank__pay" }] }] })
        };
        let found = |name: &str, role: &str| {
            scan(&[called(name), answered(role)], None)
                .discovered
                .contains(&"mcp__bank__pay".to_owned())
        };
        assert!(found(SEARCH_TOOL_NAME, "user"));
        assert!(!found("mcp__web__fetch", "user"), "a server's result can't load tools");
        assert!(!found(SEARCH_TOOL_NAME, "assistant"), "nor can the model");
        assert!(!found("web_search", "user"), "a page can't load tools");
        assert!(scan(&[answered("user")], None).discovered.is_empty(), "the call is gone");
        let answered_twice = [
            called(SEARCH_TOOL_NAME),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": "none" }] }),
            answered("user"),
        ];
        assert!(scan(&answered_twice, None).discovered.is_empty(), "it was answered before");
        let written = json!({ "role": "user", "content": [{ "type": "tool_search_tool_result",
            "content": { "tool_references": [{ "tool_name": "mcp__bank__pay" }] } }] });
        assert!(
            scan(&[written], None).discovered.is_empty(),
            "a user can't answer for the provider"
        );
    }

    #[test]
    fn a_search_of_a_server_that_is_named_like_ours_loads_nothing() {
        let found = json!({ "tools": [{ "name": "mcp__bank__pay" }] }).to_string();
        let anthropic = |server: &str, name: &str, input: &Value| {
            json!({ "role": "assistant", "content": [
                { "type": "mcp_tool_use", "id": "m1", "name": name, "server_name": server, "input": input },
                { "type": "mcp_tool_result", "tool_use_id": "m1", "is_error": false, "content": found }] })
        };
        let responses = |server: &str, name: &str, input: &Value| {
            json!({ "type": "mcp_call", "id": "m1", "name": name, "server_label": server,
                    "arguments": input.to_string(), "output": found })
        };
        let nothing = json!({});
        for foreign in [
            anthropic("web", SEARCH_TOOL_NAME, &nothing),
            anthropic("toolgate", SEARCH_TOOL_NAME, &nothing),
            responses("web", SEARCH_TOOL_NAME, &nothing),
            responses("toolgate", SEARCH_TOOL_NAME, &nothing),
        ] {
            let history = scan(std::slice::from_ref(&foreign), None);
            assert_eq!(history.discovered, [""; 0], "{foreign}");
            assert_eq!(history.calls, [], "{foreign}");
            let snapshot = history.snapshot();
            assert_eq!(scan(&[foreign], Some(&snapshot)).discovered, [""; 0], "compacted");
        }
        let inner = json!({ "name": "mcp__bank__login", "arguments": {} });
        for wrapped in
            [anthropic("web", CALL_TOOL_NAME, &inner), responses("web", CALL_TOOL_NAME, &inner)]
        {
            let expected = [(CALL_TOOL_NAME.to_owned(), CallStatus::Succeeded)];
            assert_eq!(called(&[wrapped]), expected, "a server has no envelope");
        }
    }

    #[test]
    fn what_is_no_answer_of_the_agents_to_our_search_loads_nothing() {
        let found = json!({ "tools": [{ "name": "mcp__bank__pay" }] }).to_string();
        let call = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": {} }] });
        let anthropic = |role: &str, kind: &str| {
            json!({ "role": role, "content": [
                { "type": kind, "tool_use_id": "1", "content": found }] })
        };
        let function = json!({ "type": "function_call", "call_id": "1", "name": SEARCH_TOOL_NAME, "arguments": "{}" });
        let hosted = json!({ "type": "mcp_call", "id": "1", "name": "f", "server_label": "s", "output": found });
        for written in [
            vec![call.clone(), anthropic("assistant", "tool_result")],
            vec![call.clone(), anthropic("assistant", "mcp_tool_result")],
            vec![call.clone(), anthropic("user", "mcp_tool_result")],
            vec![function, hosted],
        ] {
            let discovered = scan(&written, None).discovered;
            assert!(!discovered.contains(&"mcp__bank__pay".to_owned()), "{written:?}");
        }
        let ours = [call, anthropic("user", "tool_result")];
        assert_eq!(scan(&ours, None).discovered, ["mcp__bank__pay"]);
    }

    #[test]
    fn an_answer_to_gemini_that_another_tool_gave_is_not_our_searchs() {
        let found = json!({ "tools": [{ "name": "mcp__bank__pay" }] }).to_string();
        let call = json!({ "role": "model", "parts": [
            { "functionCall": { "name": SEARCH_TOOL_NAME, "args": { "query": "x" } } },
            { "functionCall": { "name": "mcp__web__fetch", "args": {} } }] });
        let discovered = |role: &str, name: &str| {
            let answer = json!({ "role": role, "parts": [
                { "functionResponse": { "name": name, "response": { "result": found } } }] });
            scan(&[call.clone(), answer], None).discovered
        };
        assert_eq!(discovered("user", SEARCH_TOOL_NAME), ["mcp__bank__pay"]);
        assert_eq!(discovered("user", "mcp__web__fetch"), [""; 0], "out of its order");
        assert_eq!(discovered("model", SEARCH_TOOL_NAME), [""; 0], "the model wrote it");
    }

    #[test]
    fn only_the_author_adds_tools_in_an_item() {
        let item = |role: &Value| json!({ "type": "additional_tools", "role": role, "tools": [{ "name": "mcp__a__b" }] });
        for role in ["developer", "system"] {
            assert_eq!(scan(&[item(&json!(role))], None).discovered, ["mcp__a__b"], "{role}");
        }
        for role in [json!("user"), json!("assistant"), json!("tool"), json!(null)] {
            assert_eq!(scan(&[item(&role)], None).discovered, [""; 0], "{role}");
        }
    }

    #[test]
    fn a_call_that_was_answered_before_a_compaction_has_no_second_answer() {
        let call = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": {} }] });
        let answer = |content: &Value| {
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": content }] })
        };
        let first = answer(&json!("none"));
        let reference = json!([{ "type": "tool_reference", "tool_name": "mcp__bank__pay" }]);
        let written = json!(json!({ "tools": [{ "name": "mcp__bank__pay" }] }).to_string());
        let failed = json!(r#"{"error": "gone"}"#);
        let snapshot = scan(&[call.clone(), first.clone()], None).snapshot();
        for second in [&reference, &written, &failed] {
            let history = scan(&[answer(second)], Some(&snapshot));
            assert_eq!(history.discovered, [""; 0], "{second}");
            assert_eq!(history.calls[0].status, CallStatus::Succeeded, "{second}");
            let history = scan(&[call.clone(), first.clone(), answer(second)], Some(&snapshot));
            assert_eq!(history.discovered, [""; 0], "{second}");
        }
        let waiting = scan(std::slice::from_ref(&call), None).snapshot();
        assert_eq!(scan(&[answer(&reference)], Some(&waiting)).discovered, ["mcp__bank__pay"]);
        let again = scan(&[call, answer(&reference)], Some(&snapshot));
        assert_eq!(again.discovered, ["mcp__bank__pay"], "the model called it again");
    }

    #[test]
    fn failed_calls_and_searches_of_gemini_are_read() {
        let found = json!({ "tools": [{ "name": "mcp__a__c" }] }).to_string();
        let messages = [
            json!({ "role": "user", "parts": [{ "text": "go" }] }),
            json!({ "role": "model", "parts": [
                { "functionCall": { "id": "1", "name": "mcp__a__b", "args": {} } },
                { "functionCall": { "id": "2", "name": SEARCH_TOOL_NAME, "args": { "query": "c" } } }] }),
            json!({ "role": "user", "parts": [
                { "functionResponse": { "id": "2", "name": SEARCH_TOOL_NAME,
                                        "response": { "result": found } } },
                { "functionResponse": { "id": "1", "name": "mcp__a__b",
                                        "response": { "error": "no such thing" } } }] }),
        ];
        let history = scan(&messages, None);
        assert_eq!(history.discovered, ["mcp__a__c"]);
        assert_eq!(history.calls[0].status, CallStatus::Failed);
        assert_eq!(history.turns, 1);
    }

    #[test]
    fn tools_that_a_system_message_adds_are_discovered() {
        let definition =
            json!({ "type": "tool_definition", "definition": { "name": "mcp__a__b" } });
        let reference = json!({ "type": "tool_reference", "name": "mcp__a__c" });
        let change = |role: &str, kind: &str, tool: &Value| json!({ "role": role, "content": [{ "type": kind, "tool": tool }] });
        let messages = [
            change("system", "tool_addition", &definition),
            change("system", "tool_addition", &reference),
            change("system", "tool_removal", &json!({ "type": "tool_reference", "name": "x" })),
            change("user", "tool_addition", &json!({ "type": "tool_reference", "name": "y" })),
            change("system", "tool_addition", &json!(7)),
        ];
        assert_eq!(scan(&messages, None).discovered, ["mcp__a__b", "mcp__a__c"]);
    }
}
