//! Answers of a model: envelopes that are opened, and searches that the proxy answers.

use serde_json::{Map, Value, json};
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::envelope::{self, NamedCall, is_envelope};
use toolgate_llm::strategy::Api;

use crate::gate::Call;
use crate::kept::OpenCall;
use crate::toolset::Names;
use crate::{gemini, responses};

/// Search that a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Search {
    /// The provider's ID of the call.
    pub(crate) id: String,
    /// Its arguments, an object or a text that holds one.
    pub(crate) arguments: Value,
}

impl Search {
    /// Returns the search as a call without an answer.
    pub(crate) fn open(&self) -> OpenCall {
        OpenCall::Search(self.id.clone())
    }
}

/// Requests of an answer that the proxy or the host must answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) searches: Vec<Search>,
    /// True if the host has a call to run.
    pub(crate) has_calls: bool,
}

/// Returns true if a name means the proxy's search.
pub(crate) fn is_search(name: &str) -> bool {
    name.rsplit(['.', ':', '/']).next() == Some(SEARCH_TOOL_NAME)
}

/// Reads the call in an envelope's arguments. Without arguments it has an empty object. `None` if there is no call in it, or its
/// arguments are no object, which a host could not read.
pub(crate) fn open(envelope: &Value) -> Option<NamedCall> {
    let mut call = envelope::open(envelope).ok()?;
    if matches!(call.arguments_json.trim(), "" | "null") {
        "{}".clone_into(&mut call.arguments_json);
    }
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments_json).is_ok();
    is_object.then_some(call)
}

/// Opens the envelopes of a message and takes the searches out of it. The message is a whole answer, or the message of a
/// choice of Chat Completions.
pub(crate) fn opened(api: Api, message: &mut Value, names: &Names) -> Asked {
    match api {
        Api::OpenAiResponses => return responses::opened(message, names),
        Api::Gemini => return gemini::opened(message),
        Api::Anthropic | Api::OpenAiChat => {}
    }
    let mut asked = Asked::default();
    let key = if api == Api::Anthropic { "content" } else { "tool_calls" };
    let Some(items) = message.get_mut(key).and_then(Value::as_array_mut) else { return asked };
    items.retain_mut(|item| {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        if api == Api::Anthropic {
            return item["type"] != "tool_use" || asked.keep(id, item, "input");
        }
        if let Some(call) = item.get_mut("function") {
            return asked.keep(id, call, "arguments");
        }
        // A call of a custom tool, whose input is a text.
        asked.has_calls |= item["custom"].is_object();
        true
    });
    if items.is_empty() && api != Api::Anthropic && !asked.searches.is_empty() {
        remove(message, key);
    }
    asked
}

fn remove(message: &mut Value, key: &str) {
    if let Some(fields) = message.as_object_mut() {
        fields.shift_remove(key);
    }
}

impl Asked {
    /// Opens a call. Returns false if it is a search, which is noted.
    pub(crate) fn keep(&mut self, id: String, call: &mut Value, arguments: &str) -> bool {
        let Some(name) = call.get("name").and_then(Value::as_str) else { return true };
        if is_search(name) {
            let arguments = call.get(arguments).cloned().unwrap_or_default();
            self.searches.push(Search { id, arguments });
            return false;
        }
        let envelope = call.get(arguments).filter(|_| is_envelope(name));
        match envelope.and_then(open) {
            Some(named) if is_search(&named.name) => {
                self.searches.push(Search { id, arguments: named.arguments_json.into() });
                return false;
            }
            Some(named) => put(call, arguments, named),
            // What holds no call stays: the host tells the model that there is no such tool.
            None => {}
        }
        self.has_calls = true;
        true
    }
}

/// Writes a call in the place of its envelope.
fn put(call: &mut Value, key: &str, named: NamedCall) {
    let written = named.arguments_json;
    call["name"] = named.name.into();
    // Chat Completions have arguments as a text.
    let parsed = if key == "arguments" { None } else { serde_json::from_str(&written).ok() };
    call[key] = parsed.unwrap_or_else(|| written.into());
}

/// Answer to a search.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Text for the model.
    pub(crate) text: String,
    /// Definitions of what was found, where the API takes them.
    pub(crate) tools: Vec<Value>,
}

/// Results of an answer's searches, and of its calls of the host's tools. Each list has the answer's order.
#[derive(Debug, Default)]
pub(crate) struct Results<'a> {
    pub(crate) searches: &'a [Search],
    /// Answer to each search.
    pub(crate) found: &'a [Found],
    pub(crate) calls: &'a [Call],
    /// Text for each call.
    pub(crate) told: &'a [String],
}

impl Results<'_> {
    /// Returns the provider's ID of each call and its text.
    pub(crate) fn by_id(&self) -> impl Iterator<Item = (&str, &str)> {
        let found = self.found.iter().map(|found| found.text.as_str());
        let searches = self.searches.iter().map(|search| search.id.as_str()).zip(found);
        searches.chain(self.told_by_id())
    }

    /// Returns the provider's ID of each call of the host's tools and its text.
    pub(crate) fn told_by_id(&self) -> impl Iterator<Item = (&str, &str)> {
        let told = self.told.iter().map(String::as_str);
        self.calls.iter().map(|call| call.id.as_str()).zip(told)
    }

    /// Returns the results as messages, in the API's format. Their calls stand in what the model `said`.
    pub(crate) fn messages(&self, api: Api, said: &[Value]) -> Vec<Value> {
        match api {
            Api::Anthropic => {
                let block = |(id, text): (&str, &str)| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
                let blocks: Vec<Value> = self.by_id().map(block).collect();
                vec![json!({ "role": "user", "content": blocks })]
            }
            Api::OpenAiChat => {
                let message = |(id, text): (&str, &str)| json!({ "role": "tool", "tool_call_id": id, "content": text });
                self.by_id().map(message).collect()
            }
            Api::OpenAiResponses => responses::results(said, self),
            Api::Gemini => vec![gemini::results(said, self)],
        }
    }
}

/// Puts the host's tools into a whole answer that tells back those that the provider was sent.
pub(crate) fn put_tools(api: Api, answer: &mut Value, definitions: &str) {
    if api == Api::OpenAiResponses {
        responses::put_tools(answer, definitions);
    }
}

/// Returns the usage of a whole answer; null if there is none.
pub(crate) fn usage(api: Api, answer: &Value) -> &Value {
    if api == Api::Gemini { &answer["usageMetadata"] } else { &answer["usage"] }
}

/// Adds the numbers of a usage to another, at any depth. Other values are the newer ones.
pub(crate) fn add_usage(total: &mut Value, more: &Value) {
    match (&mut *total, more) {
        (Value::Object(total), Value::Object(more)) => {
            for (name, more) in more {
                add_usage(total.entry(name.as_str()).or_insert(Value::Null), more);
            }
        }
        (Value::Number(_), Value::Number(_)) => {
            if let (Some(one), Some(two)) = (total.as_u64(), more.as_u64()) {
                *total = one.saturating_add(two).into();
            } else if let (Some(one), Some(two)) = (total.as_f64(), more.as_f64()) {
                // Such as a price.
                *total = (one + two).into();
            }
        }
        (_, Value::Null) => {}
        _ => *total = more.clone(),
    }
}

/// Gives the second of two answers the ID of the first, and the usage of both.
pub(crate) fn join_heads(first: &Value, second: &mut Value) {
    let mut usage = first["usage"].clone();
    add_usage(&mut usage, &second["usage"]);
    if !usage.is_null() {
        second["usage"] = usage;
    }
    second["id"] = first["id"].clone();
}

/// Joins two answers of one turn: what the first said comes first, and the usage is that of both.
pub(crate) fn joined(api: Api, first: &Value, mut second: Value) -> Value {
    match api {
        Api::OpenAiResponses => return responses::joined(first, second),
        Api::Gemini => return gemini::joined(first, second),
        Api::Anthropic | Api::OpenAiChat => {}
    }
    if !second.is_object() {
        return second;
    }
    join_heads(first, &mut second);
    if api == Api::Anthropic {
        let said = [&first["content"], &second["content"]];
        let content: Vec<Value> =
            said.into_iter().filter_map(Value::as_array).flatten().cloned().collect();
        second["content"] = content.into();
        return second;
    }
    let text =
        |answer: &Value| answer["choices"][0]["message"]["content"].as_str().map(str::to_owned);
    let all = text(first)
        .filter(|before| !before.is_empty())
        .map(|before| before + &text(&second).unwrap_or_default());
    if let (Some(all), Some(message)) = (all, message(api, &mut second)) {
        message["content"] = all.into();
    }
    second
}

/// Says that a turn has ended without a call: its searches were not answered any more. Other reasons for the end stay.
pub(crate) fn end_turn(api: Api, answer: &mut Value) {
    if api == Api::Anthropic {
        if answer["stop_reason"] == "tool_use" {
            answer["stop_reason"] = "end_turn".into();
        }
    } else if api == Api::OpenAiChat
        && let Some(reason) = answer.pointer_mut("/choices/0/finish_reason")
        && *reason == "tool_calls"
    {
        *reason = "stop".into();
    }
}

/// Returns the message of a whole answer that calls stand in.
pub(crate) fn message(api: Api, answer: &mut Value) -> Option<&mut Value> {
    match api {
        Api::Anthropic | Api::OpenAiResponses | Api::Gemini => answer.is_object().then_some(answer),
        Api::OpenAiChat => answer.get_mut("choices")?.get_mut(0)?.get_mut("message"),
    }
    .filter(|message| message.is_object())
}

/// Returns the messages with which the model's answer goes back to it.
pub(crate) fn as_history(api: Api, message: &Value) -> Vec<Value> {
    match api {
        Api::Anthropic => {
            return vec![json!({ "role": "assistant", "content": message["content"] })];
        }
        Api::OpenAiResponses => return message["output"].as_array().cloned().unwrap_or_default(),
        Api::Gemini => return vec![gemini::as_history(message)],
        Api::OpenAiChat => {}
    }
    let kept = ["role", "content", "tool_calls", "reasoning_content", "refusal"];
    let fields =
        kept.iter().filter_map(|name| Some(((*name).to_owned(), message.get(*name)?.clone())));
    vec![Value::Object(fields.collect::<Map<String, Value>>())]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolgate_llm::envelope::wrap_history;

    use super::*;

    #[test]
    fn envelopes_of_whole_answers_are_opened() {
        let envelope = json!({ "name": "mcp__a__b", "arguments": { "z": 1 } });
        let mut answer = json!({ "content": [
            { "type": "text", "text": "x" },
            { "type": "tool_use", "id": "1", "name": "toolgate_call_tool", "input": envelope },
            { "type": "tool_use", "id": "2", "name": "Bash", "input": { "c": 1 } }] });
        let asked = opened(Api::Anthropic, &mut answer, &Names::new());
        assert_eq!(asked, Asked { searches: Vec::new(), has_calls: true });
        assert_eq!(
            answer["content"][1],
            json!({ "type": "tool_use", "id": "1", "name": "mcp__a__b", "input": { "z": 1 } })
        );
        assert_eq!(answer["content"][2]["name"], "Bash");
        let mut message = json!({ "role": "assistant", "tool_calls": [{ "id": "1", "function": {
            "name": "functions.toolgate_call_tool", "arguments": envelope.to_string() } }] });
        assert!(opened(Api::OpenAiChat, &mut message, &Names::new()).has_calls);
        let function = &message["tool_calls"][0]["function"];
        assert_eq!(*function, json!({ "name": "mcp__a__b", "arguments": "{\"z\":1}" }));
        let mut custom = json!({ "tool_calls": [{ "id": "1", "type": "custom",
            "custom": { "name": "Edit", "input": "x" } }] });
        assert!(opened(Api::OpenAiChat, &mut custom, &Names::new()).has_calls);
    }

    #[test]
    fn searches_are_taken_out() {
        let search = json!({ "query": "log" });
        let within = json!({ "name": SEARCH_TOOL_NAME, "arguments": search });
        let mut answer = json!({ "content": [
            { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": search },
            { "type": "tool_use", "id": "2", "name": "toolgate_call_tool", "input": within }] });
        let asked = opened(Api::Anthropic, &mut answer, &Names::new());
        let ids: Vec<&str> = asked.searches.iter().map(|search| search.id.as_str()).collect();
        assert_eq!((ids, asked.has_calls), (vec!["1", "2"], false));
        assert_eq!(answer["content"], json!([]));
        let mut message = json!({ "content": null, "tool_calls": [{ "id": "1", "function": {
            "name": SEARCH_TOOL_NAME, "arguments": "{}" } }] });
        assert_eq!(opened(Api::OpenAiChat, &mut message, &Names::new()).searches.len(), 1);
        assert_eq!(message, json!({ "content": null }));
    }

    #[test]
    fn what_holds_no_call_stays() {
        let texts = json!({ "name": "t", "arguments": "ls -l" });
        for input in [json!({}), json!({ "name": "" }), json!("x"), json!(null), texts] {
            let mut answer = json!({ "content": [{ "type": "tool_use", "id": "1",
                "name": "toolgate_call_tool", "input": input }] });
            let before = answer.clone();
            assert!(opened(Api::Anthropic, &mut answer, &Names::new()).has_calls);
            assert_eq!(answer, before);
        }
        let mut odd = json!({ "content": "text" });
        assert_eq!(opened(Api::Anthropic, &mut odd, &Names::new()), Asked::default());
    }

    #[test]
    fn usage_is_summed() {
        let mut total = json!({ "a": 1, "d": { "x": 2 }, "tier": "std", "n": null, "cost": 0.5 });
        add_usage(
            &mut total,
            &json!({ "a": 2, "b": 3, "d": { "x": 1, "y": 1 }, "tier": "std", "n": null, "cost": 1 }),
        );
        assert_eq!(
            total,
            json!({ "a": 3, "d": { "x": 3, "y": 1 }, "tier": "std", "n": null, "b": 3, "cost": 1.5 })
        );
    }

    #[test]
    fn answers_of_one_turn_are_joined() {
        let first = json!({ "id": "m1", "content": [{ "type": "text", "text": "a" }], "usage": { "i": 1 } });
        let second = json!({ "id": "m2", "content": [{ "type": "text", "text": "b" }], "usage": { "i": 2 },
            "stop_reason": "end_turn" });
        let both = joined(Api::Anthropic, &first, second);
        assert_eq!((both["id"].as_str(), both["usage"]["i"].as_u64()), (Some("m1"), Some(3)));
        assert_eq!(both["content"].as_array().map(Vec::len), Some(2));
        let chat = |id: &str, text: Value| json!({ "id": id, "choices": [{ "message": { "content": text } }] });
        let both = joined(Api::OpenAiChat, &chat("1", json!("a")), chat("2", json!("b")));
        assert_eq!(both, chat("1", json!("ab")));
        assert_eq!(joined(Api::OpenAiChat, &chat("1", json!("a")), json!([7])), json!([7]));
    }

    #[test]
    fn what_was_put_into_envelopes_comes_out_of_them() {
        let given =
            [json!({}), json!({ "z": 1, "a": { "name": "x" } }), json!({ "é": ["\"", null] })];
        let blocks = given.iter().enumerate().map(|(at, input)| {
            json!({ "type": "tool_use", "id": at.to_string(), "name": "mcp__a__b", "input": input })
        });
        let said = json!({ "role": "assistant", "content": blocks.collect::<Vec<_>>() });
        let calls = given.iter().enumerate().map(|(at, input)| {
            let function = json!({ "name": "mcp__a__b", "arguments": input.to_string() });
            json!({ "id": at.to_string(), "type": "function", "function": function })
        });
        let chat = json!({ "role": "assistant", "tool_calls": calls.collect::<Vec<_>>() });
        for (api, message) in [(Api::Anthropic, said), (Api::OpenAiChat, chat)] {
            let mut messages = [message.clone()];
            wrap_history(api, &mut messages, &HashSet::from(["Bash"]));
            let [mut wrapped] = messages;
            assert_ne!(wrapped, message);
            assert!(opened(api, &mut wrapped, &Names::new()).has_calls);
            assert_eq!(wrapped, message);
        }
    }
}
