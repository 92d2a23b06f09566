//! Reading of what became of refused calls: those of the turn before the user's new message.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::events::{Event, read};
use super::reading::{blocks, field, items, text};
use super::snapshot::is_snapshot;
use crate::SEARCH_TOOL_NAME;

/// Errors of calls that Gate refuses, as a tool's result has them.
const REFUSALS: [&str; 9] = [
    "tool_not_available",
    "unknown_tool",
    "precondition_unmet",
    "scope_missing",
    "handle_expired",
    "handle_invalid",
    "schema_changed",
    "arguments_invalid",
    "quarantined",
];

/// Longest result that is read as a refusal, in bytes. A refusal may hold the tool's schema.
const REFUSAL_MAX: usize = 1 << 20;

/// Question marks of other scripts: full width, small, vertical, Arabic, Armenian, Ethiopic, Greek and Vai.
const QUESTION_MARKS: [char; 8] = ['？', '﹖', '︖', '؟', '՞', '፧', '\u{37e}', '꘏'];

/// Numbers of refused calls, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusalOutcomes {
    /// Another call, made after the refusal, succeeded. Searches for tools don't count as such a call.
    pub mended: u64,
    /// No call succeeded, and the turn ended with a question to the user.
    pub asked: u64,
    /// Neither.
    pub given_up: u64,
}

/// Reads what became of the calls that Gate refused in the turn before the user's new message.
///
/// Outcomes are read only where the history ends with that message, so that a turn is read once: not at the steps of the
/// turn that follows, nor beside a message that is repeated. System messages and snapshots are looked past. A message with
/// a tool's result is none of the user's. Without a message of the user before it, the turn begins with the history.
#[must_use]
pub fn refusal_outcomes(messages: &[Value]) -> RefusalOutcomes {
    let is_spoken = |entry: &&Value| !is_snapshot(entry) && !is_instruction(entry);
    let spoken: Vec<&Value> = messages.iter().rev().filter(is_spoken).collect();
    let Some((newest, before)) = spoken.split_first() else { return RefusalOutcomes::default() };
    if !is_users(newest) {
        return RefusalOutcomes::default();
    }
    let mut turn = Turn::default();
    let length = before.iter().position(|entry| is_users(entry)).unwrap_or(before.len());
    before[..length].iter().rev().for_each(|entry| turn.take(entry));
    turn.outcomes()
}

/// One turn, as far as it has been read.
#[derive(Default)]
struct Turn {
    /// Number of events so far.
    now: usize,
    /// Calls that have no answer yet, by their keys.
    open: HashMap<String, OpenCall>,
    /// Calls without a key that have no answer yet, oldest first.
    anonymous: VecDeque<OpenCall>,
    /// Moments at which calls were refused.
    refused: Vec<usize>,
    /// Moment at which the last call that succeeded was made.
    last_success: Option<usize>,
    /// True if the texts since the last call or result hold a question.
    asks: bool,
}

/// Call that has no answer yet.
struct OpenCall {
    made: usize,
    is_search: bool,
}

impl Turn {
    fn take(&mut self, entry: &Value) {
        // Gemini's results may be objects, which events don't hold.
        let parts = items(field(entry, "parts")).iter();
        let mut responses = parts.filter_map(|part| part.get("functionResponse"));
        self.asks |= has_question(entry);
        for event in read(entry) {
            self.now += 1;
            match event {
                Event::Called { key, tool } => {
                    self.asks = false;
                    let call = OpenCall { made: self.now, is_search: tool == SEARCH_TOOL_NAME };
                    match key {
                        Some(key) => drop(self.open.insert(key, call)),
                        None => self.anonymous.push_back(call),
                    }
                }
                Event::Answered { key, failed, content, .. } => {
                    self.asks = false;
                    let response = responses.next().map(|answer| field(answer, "response"));
                    let refused = is_refusal(content) || response.is_some_and(is_refusal);
                    self.answer(key, failed, refused);
                }
                Event::Spoke { .. } | Event::Found { .. } | Event::Referred { .. } => {}
            }
        }
    }

    fn answer(&mut self, key: Option<String>, failed: bool, refused: bool) {
        let call = match key {
            Some(key) => self.open.remove(&key),
            None => self.anonymous.pop_front(),
        };
        let Some(call) = call else { return };
        if refused {
            self.refused.push(self.now);
        } else if !failed && !call.is_search {
            self.last_success = self.last_success.max(Some(call.made));
        }
    }

    fn outcomes(&self) -> RefusalOutcomes {
        let is_mended = |refused: &&usize| self.last_success > Some(**refused);
        let mended = self.refused.iter().filter(is_mended).count() as u64;
        let others = self.refused.len() as u64 - mended;
        if self.asks {
            RefusalOutcomes { mended, asked: others, given_up: 0 }
        } else {
            RefusalOutcomes { mended, asked: 0, given_up: others }
        }
    }
}

fn is_instruction(entry: &Value) -> bool {
    matches!(text(field(entry, "role")), "system" | "developer")
        || text(field(entry, "type")) == "additional_tools"
}

/// Returns true for a message of the user. Results of tools have the user's role too in some APIs.
fn is_users(entry: &Value) -> bool {
    let is_result = || read(entry).iter().any(|event| matches!(event, Event::Answered { .. }));
    let says = |part: &str| match field(entry, part) {
        Value::String(said) => !said.trim().is_empty(),
        Value::Array(blocks) => !blocks.is_empty(),
        other => other.is_object(),
    };
    text(field(entry, "role")) == "user" && (says("content") || says("parts")) && !is_result()
}

/// Returns true if a result is Gate's refusal: a JSON object whose `error` is one of Gate's codes, with a message. It may
/// stand in a text, in text blocks, or within the `error`, `result` or `output` of an object.
fn is_refusal(content: &Value) -> bool {
    let says = |result: &Value| {
        let error = text(field(result, "error"));
        REFUSALS.iter().any(|code| error.eq_ignore_ascii_case(code))
            && field(result, "message").is_string()
    };
    let written = |written: &str| {
        let is_object = written.len() <= REFUSAL_MAX && written.trim_start().starts_with('{');
        is_object && serde_json::from_str(written).is_ok_and(|result: Value| says(&result))
    };
    match content {
        Value::String(said) => written(said),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| text(field(block, "text")));
            written(&texts.collect::<String>())
        }
        Value::Object(_) => {
            let inner = ["error", "result", "output"].map(|key| field(content, key));
            says(content) || inner.iter().any(|inner| says(inner) || written(text(inner)))
        }
        _ => false,
    }
}

/// Returns true if the model's texts in an entry hold a question mark, in any script. One amid an address does not count.
fn has_question(entry: &Value) -> bool {
    if !matches!(text(field(entry, "role")), "assistant" | "model") {
        return false;
    }
    let content = field(entry, "content");
    let is_text =
        |block: &&Value| matches!(text(field(block, "type")), "text" | "output_text" | "");
    let of_blocks = blocks(content).iter().filter(is_text).map(|block| field(block, "text"));
    let is_said = |part: &&Value| field(part, "thought") != &Value::Bool(true);
    let parts = items(field(entry, "parts")).iter().filter(is_said);
    let of_parts = parts.map(|part| field(part, "text"));
    std::iter::once(content).chain(of_blocks).chain(of_parts).map(text).any(asks)
}

fn asks(said: &str) -> bool {
    let after = |place: usize| said[place + 1..].chars().next();
    said.contains(QUESTION_MARKS)
        || said
            .match_indices('?')
            .any(|(place, _)| !after(place).is_some_and(|next| next.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Step of a turn: a call with its result, or a text of the model.
    enum Step {
        Call(&'static str, Value),
        Says(&'static str),
    }
    use Step::{Call, Says};

    fn refused(code: &str) -> Value {
        json!({ "error": code, "message": "No.", "available": ["mcp__a__b"] })
    }

    fn done() -> Value {
        json!({ "done": true })
    }

    type Write = fn(&[Step]) -> Vec<Value>;

    fn anthropic(steps: &[Step]) -> Vec<Value> {
        let entries = |(id, step): (usize, &Step)| match step {
            Call(tool, result) => vec![
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": id.to_string(), "name": tool, "input": {} }] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id.to_string(),
                      "content": [{ "type": "text", "text": result.to_string() }] }] }),
            ],
            Says(said) => {
                vec![json!({ "role": "assistant", "content": [{ "type": "text", "text": said }] })]
            }
        };
        steps.iter().enumerate().flat_map(entries).collect()
    }

    fn chat(steps: &[Step]) -> Vec<Value> {
        let entries = |(id, step): (usize, &Step)| match step {
            Call(tool, result) => vec![
                json!({ "role": "assistant", "content": null, "tool_calls": [
                    { "id": id.to_string(), "function": { "name": tool, "arguments": "{}" } }] }),
                json!({ "role": "tool", "tool_call_id": id.to_string(),
                        "content": result.to_string() }),
            ],
            Says(said) => vec![json!({ "role": "assistant", "content": said })],
        };
        steps.iter().enumerate().flat_map(entries).collect()
    }

    fn responses(steps: &[Step]) -> Vec<Value> {
        let entries = |(id, step): (usize, &Step)| match step {
            Call(tool, result) => vec![
                json!({ "type": "reasoning", "summary": [] }),
                json!({ "type": "function_call", "call_id": id.to_string(), "name": tool,
                        "arguments": "{}" }),
                json!({ "type": "function_call_output", "call_id": id.to_string(),
                        "output": result.to_string() }),
            ],
            Says(said) => vec![json!({ "type": "message", "role": "assistant", "content": [
                { "type": "output_text", "text": said }] })],
        };
        steps.iter().enumerate().flat_map(entries).collect()
    }

    fn gemini(steps: &[Step]) -> Vec<Value> {
        let entries = |step: &Step| match step {
            Call(tool, result) => vec![
                json!({ "role": "model", "parts": [{ "functionCall": { "name": tool, "args": {} } }] }),
                json!({ "role": "user", "parts": [
                    { "functionResponse": { "name": tool, "response": result } }] }),
            ],
            Says(said) => vec![json!({ "role": "model", "parts": [{ "text": said }] })],
        };
        steps.iter().flat_map(entries).collect()
    }

    /// Wraps results as Gemini's own libraries do.
    fn gemini_wrapped(steps: &[Step]) -> Vec<Value> {
        let wrapped = steps.iter().map(|step| match step {
            Call(tool, result) => {
                let key = if result.get("error").is_some() { "error" } else { "result" };
                Call(tool, json!({ key: result.to_string() }))
            }
            Says(said) => Says(said),
        });
        gemini(&wrapped.collect::<Vec<_>>())
    }

    const APIS: [(&str, Write); 5] = [
        ("anthropic", anthropic),
        ("chat", chat),
        ("responses", responses),
        ("gemini", gemini),
        ("gemini wrapped", gemini_wrapped),
    ];

    fn users(said: &str) -> Value {
        json!({ "role": "user", "content": said, "parts": [{ "text": said }] })
    }

    /// Checks the numbers of mended, asked and given-up calls of a turn, in every API.
    fn check(steps: &[Step], expected: [u64; 3]) {
        for (name, write) in APIS {
            let mut messages = vec![users("earlier")];
            messages.extend(write(&[Call("mcp__a__b", refused("unknown_tool")), Says("Sorry.")]));
            messages.push(users("go"));
            messages.extend(write(steps));
            messages.push(users("and now?"));
            let RefusalOutcomes { mended, asked, given_up } = refusal_outcomes(&messages);
            assert_eq!([mended, asked, given_up], expected, "{name}: {messages:?}");
        }
    }

    #[test]
    fn a_refused_call_is_mended_by_a_later_one_that_succeeds() {
        let first = || Call("mcp__a__b", refused("arguments_invalid"));
        check(&[first(), Call("mcp__a__b", done()), Says("Done.")], [1, 0, 0]);
        let second = || Call("mcp__a__c", refused("tool_not_available"));
        check(&[first(), second(), Call("mcp__a__d", done()), Says("Fine?")], [2, 0, 0]);
        check(&[first(), Call("mcp__a__d", done()), second(), Says("Alas.")], [1, 0, 1]);
        let failed = json!({ "error": "the disk is full" });
        check(&[first(), Call("mcp__a__b", failed), Says("Alas.")], [0, 0, 1]);
        check(&[Call("mcp__a__b", done()), first(), Says("Alas.")], [0, 0, 1]);
        check(&[first(), Call(SEARCH_TOOL_NAME, done()), Says("Alas.")], [0, 0, 1]);
    }

    #[test]
    fn a_turn_that_ends_with_a_question_asked_the_user() {
        let first = || Call("mcp__a__b", refused("scope_missing"));
        for question in ["May I?", "可以吗？", "هل تسمح؟", "¿Puedo? Dime.", "Which (a or b?)"]
        {
            check(&[first(), Says(question)], [0, 1, 0]);
        }
        for end in ["I can't.", "See https://a.example/?q=1", ""] {
            check(&[first(), Says(end)], [0, 0, 1]);
        }
        check(&[Says("Shall I?"), first(), Says("No.")], [0, 0, 1]);
        check(&[first()], [0, 0, 1]);
    }

    #[test]
    fn only_gates_refusals_count() {
        let results = [
            json!({ "error": "no such page", "message": "404" }),
            json!({ "error": "unknown_tool" }),
            json!({ "message": "unknown_tool" }),
            json!({ "error": 7, "message": "?" }),
        ];
        for result in results {
            check(&[Call("mcp__a__b", result), Says("Alas.")], [0, 0, 0]);
        }
        for code in REFUSALS {
            check(&[Call("mcp__a__b", refused(code)), Says("Alas.")], [0, 0, 1]);
        }
    }

    #[test]
    fn a_call_beside_the_refused_one_does_not_mend_it() {
        let uses =
            ["1", "2"].map(|id| json!({ "type": "tool_use", "id": id, "name": "mcp__a__b" }));
        let result = |id: &str, content: Value| json!({ "type": "tool_result", "tool_use_id": id, "content": content.to_string() });
        let messages = [
            users("go"),
            json!({ "role": "assistant", "content": uses }),
            json!({ "role": "user", "content": [
                result("1", refused("unknown_tool")), result("2", done())] }),
            users("well?"),
        ];
        let expected = RefusalOutcomes { given_up: 1, ..RefusalOutcomes::default() };
        assert_eq!(refusal_outcomes(&messages), expected);
    }

    #[test]
    fn a_turn_is_read_once_when_the_next_message_of_the_user_comes() {
        for (name, write) in APIS {
            let turn = write(&[Call("mcp__a__b", refused("unknown_tool")), Says("Sorry.")]);
            let mut messages = vec![users("go")];
            messages.extend(turn.clone());
            let nothing = RefusalOutcomes::default();
            assert_eq!(refusal_outcomes(&messages), nothing, "{name}: the turn may go on");
            messages.push(users("next"));
            let once = RefusalOutcomes { given_up: 1, ..nothing };
            assert_eq!(refusal_outcomes(&messages), once, "{name}");
            let system = json!({ "role": "system", "content": "Be brief." });
            let with_system = [messages.clone(), vec![system]].concat();
            assert_eq!(refusal_outcomes(&with_system), once, "{name}");
            let repeated = [messages.clone(), vec![users("next")]].concat();
            assert_eq!(refusal_outcomes(&repeated), nothing, "{name}: read already");
            messages.extend(write(&[Call("mcp__a__c", done())]));
            assert_eq!(refusal_outcomes(&messages), nothing, "{name}: amid the next turn");
            messages.extend(write(&[Says("Done.")]));
            messages.push(users("thanks"));
            assert_eq!(refusal_outcomes(&messages), nothing, "{name}: the turn before is fine");
        }
    }

    #[test]
    fn odd_histories_have_no_outcomes() {
        let odd = [json!(7), json!(null), json!({ "role": "user" }), json!({ "parts": 3 })];
        assert_eq!(refusal_outcomes(&odd), RefusalOutcomes::default());
        assert_eq!(refusal_outcomes(&[]), RefusalOutcomes::default());
        assert_eq!(refusal_outcomes(&[users("go")]), RefusalOutcomes::default());
    }
}
