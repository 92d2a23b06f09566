//! What the planner must know of an API's messages: who speaks, and which tools were called or loaded.

use std::collections::HashSet;

use serde_json::Value;

use super::Api;
use crate::history::is_authors;
use crate::{envelope, price};

/// Speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The user.
    User,
    /// A tool that answers.
    Tool,
    /// The model.
    Model,
    /// The agent's author: instructions.
    Author,
}

/// Returns the speaker of a message. What is unknown counts as the model's, because nothing may stand behind it.
pub(super) fn speaker(api: Api, message: &Value) -> Speaker {
    let role = text(message, "role");
    match api {
        Api::Anthropic if role == "system" => Speaker::Author,
        Api::Anthropic if role == "user" => answers_if(has_typed(message, "tool_result")),
        Api::Gemini if matches!(role, "user" | "") => {
            answers_if(parts(message).iter().any(|part| response(part).is_some()))
        }
        Api::Gemini if role == "function" => Speaker::Tool,
        Api::OpenAiResponses if text(message, "type").ends_with("_output") => Speaker::Tool,
        Api::OpenAiResponses if text(message, "type") == "additional_tools" => Speaker::Author,
        Api::OpenAiChat | Api::OpenAiResponses => match role {
            "user" => Speaker::User,
            "tool" | "function" => Speaker::Tool,
            "system" | "developer" => Speaker::Author,
            _ => Speaker::Model,
        },
        Api::Anthropic | Api::Gemini => Speaker::Model,
    }
}

/// Returns the number of messages before this turn's addition: those up to the last one of the user or of a tool.
/// `None` if there is none.
pub(super) fn place(api: Api, messages: &[Value]) -> Option<usize> {
    let last = messages
        .iter()
        .rposition(|message| matches!(speaker(api, message), Speaker::User | Speaker::Tool))?;
    // Instructions that follow directly belong to the same place: Anthropic takes no two system messages in a row.
    let instructed = |message: &&Value| speaker(api, message) == Speaker::Author;
    Some(last + 1 + messages[last + 1..].iter().take_while(instructed).count())
}

/// Returns true if the last one who spoke, the agent's author aside, is the user.
pub(super) fn is_at_user(api: Api, messages: &[Value]) -> bool {
    let mut speakers = messages.iter().rev().map(|message| speaker(api, message));
    speakers.find(|speaker| *speaker != Speaker::Author) == Some(Speaker::User)
}

/// Returns true if an addition may stand after so many messages; before all of them it stands in `tools`. Anthropic takes a system message only at the end or
/// before one of the model.
pub(super) fn may_follow(api: Api, messages: &[Value], after: usize) -> bool {
    let next = messages.get(after);
    api != Api::Anthropic
        || after == 0
        || next.is_none_or(|next| speaker(api, next) == Speaker::Model)
}

/// Returns the tokens of messages or definitions.
pub(super) fn tokens<'a>(
    count: &dyn Fn(&str) -> u32,
    values: impl IntoIterator<Item = &'a Value>,
) -> u32 {
    let counted = values.into_iter().map(|value| count(&price::as_read(value)));
    counted.fold(0, u32::saturating_add)
}

/// Returns the number of turns: messages of the user.
pub(super) fn turns(api: Api, messages: &[Value]) -> usize {
    messages.iter().filter(|message| speaker(api, message) == Speaker::User).count()
}

/// Returns the names of the tools that the model called, by themselves or in an envelope.
pub(super) fn called(api: Api, messages: &[Value]) -> HashSet<String> {
    calls(api, messages).into_iter().collect()
}

/// Returns the name of the tool of each call, oldest first.
pub(super) fn calls(api: Api, messages: &[Value]) -> Vec<String> {
    let mut names = Vec::new();
    for message in messages {
        match api {
            Api::Anthropic => {
                let uses = items(message, "content").iter().filter(|block| is(block, "tool_use"));
                names.extend(uses.filter_map(|block| called_tool(block, "input")));
            }
            Api::OpenAiChat => {
                let calls = items(message, "tool_calls").iter();
                let call = |call: &Value| called_tool(call.get("function")?, "arguments");
                names.extend(calls.filter_map(call));
            }
            Api::OpenAiResponses if is(message, "function_call") => {
                names.extend(called_tool(message, "arguments"));
            }
            Api::OpenAiResponses => {}
            Api::Gemini => {
                let call = |part| called_tool(function_call(part)?, "args");
                names.extend(parts(message).iter().filter_map(call));
            }
        }
    }
    names
}

/// Returns the names of the tools that results refer to, as Anthropic's do.
pub(super) fn referred(api: Api, messages: &[Value]) -> impl Iterator<Item = &str> {
    let messages = messages.iter().filter(move |_| api == Api::Anthropic);
    let blocks = messages.flat_map(|message| items(message, "content"));
    let found = blocks.flat_map(|block| items(block, "content"));
    let references = found.filter(|item| is(item, "tool_reference"));
    references.filter_map(|item| item.get("tool_name").and_then(Value::as_str))
}

/// Returns the name of the tool that a call means.
fn called_tool(call: &Value, arguments: &str) -> Option<String> {
    let name = name(call)?;
    match call.get(arguments).map(envelope::open) {
        Some(Ok(named)) if envelope::is_envelope(name) => Some(named.name),
        _ => Some(name.to_owned()),
    }
}

/// Returns the definitions that answers of the provider's search, as the agent wrote them, hold: `tools` of items
/// `tool_search_output` of the Responses API.
pub(super) fn loaded(api: Api, messages: &[Value]) -> Vec<&Value> {
    if api != Api::OpenAiResponses {
        return Vec::new();
    }
    let adds = |item: &Value| is(item, "additional_tools") && is_authors(item);
    let holds = |item: &&Value| is(item, "tool_search_output") || adds(item);
    messages.iter().filter(holds).flat_map(|item| items(item, "tools")).collect()
}

fn answers_if(answers: bool) -> Speaker {
    if answers { Speaker::Tool } else { Speaker::User }
}

fn has_typed(message: &Value, kind: &str) -> bool {
    items(message, "content").iter().any(|block| is(block, kind))
}

fn function_call(part: &Value) -> Option<&Value> {
    part.get("functionCall").or_else(|| part.get("function_call"))
}

fn response(part: &Value) -> Option<&Value> {
    part.get("functionResponse").or_else(|| part.get("function_response"))
}

fn parts(message: &Value) -> &[Value] {
    items(message, "parts")
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is(value: &Value, kind: &str) -> bool {
    text(value, "type") == kind
}

fn name(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::envelope::CALL_TOOL_NAME;

    #[test]
    fn a_turn_begins_where_the_user_spoke_last() {
        let said = |role: &str| json!({ "role": role, "content": "text" });
        let answered = json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "1", "content": "done" }] });
        let is_at_user = |messages: &[Value]| is_at_user(Api::Anthropic, messages);
        assert!(is_at_user(&[said("user")]));
        assert!(is_at_user(&[said("user"), said("system")]));
        assert!(!is_at_user(&[said("user"), said("assistant"), answered]));
        assert!(!is_at_user(&[]));
    }

    #[test]
    fn definitions_in_a_text_are_counted_without_escapes() {
        let definition = json!({ "name": "a", "description": "b" });
        let added = json!(format!("first line\n{definition}"));
        let characters = |text: &str| u32::try_from(text.chars().count()).expect("a short text");
        let expected = characters("\"first line\n\"") + characters(&definition.to_string());
        assert_eq!(tokens(&characters, [&added]), expected);
    }

    #[test]
    fn a_call_in_an_envelope_is_a_call_of_the_tool_that_it_names() {
        let inner = json!({ "name": "b", "arguments": {} });
        let written = inner.to_string();
        for (api, message) in [
            (
                Api::Anthropic,
                json!({ "content": [
                    { "type": "tool_use", "name": "a", "input": {} },
                    { "type": "tool_use", "name": CALL_TOOL_NAME, "input": inner }] }),
            ),
            (
                Api::OpenAiChat,
                json!({ "tool_calls": [
                    { "function": { "name": "a", "arguments": "{}" } },
                    { "function": { "name": CALL_TOOL_NAME, "arguments": written } }] }),
            ),
            (
                Api::Gemini,
                json!({ "parts": [
                    { "functionCall": { "name": "a" } },
                    { "functionCall": { "name": CALL_TOOL_NAME, "args": inner } }] }),
            ),
        ] {
            let expected: HashSet<String> = ["a".to_owned(), "b".to_owned()].into();
            assert_eq!(called(api, &[message]), expected, "{api:?}");
        }
        let item = json!({ "type": "function_call", "name": CALL_TOOL_NAME, "arguments": written });
        assert_eq!(called(Api::OpenAiResponses, &[item]), ["b".to_owned()].into());
    }
}
