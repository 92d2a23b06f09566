//! Recorded conversations: a request that was rewritten holds the host's, byte for byte.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::tests::turn;
use super::*;
use crate::chat::messages_field;
use crate::definitions::place;
use crate::{answer, raw};

/// Beginning of what the proxy writes amid a conversation.
const DESCRIPTIONS: &str = "[Toolgate] More tools.";

/// Turns that are played of a conversation that another API has whole.
const BEGINNING: usize = 4;

/// APIs, in the order in which conversations are dealt out.
const APIS: [Api; 4] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini];

/// Turn of a conversation.
#[derive(Deserialize)]
struct Recorded {
    conversation: String,
    query: String,
    calls: Vec<Called>,
    answer: String,
}

#[derive(Deserialize)]
struct Called {
    tool: String,
    arguments: Value,
    result: String,
}

impl Called {
    /// Returns the name that a host gives the tool.
    fn name(&self) -> String {
        format!("mcp__{}", self.tool.replace('/', "__"))
    }
}

/// Returns the text of a file of the tests' data.
fn data(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    std::fs::read_to_string(folder.join(file)).expect(file)
}

/// Returns the conversations that may be read at any time.
fn conversations() -> Vec<Vec<Recorded>> {
    let mut found: Vec<Vec<Recorded>> = Vec::new();
    for file in ["conversations/dev.jsonl", "conversations/held-out.jsonl"] {
        for line in data(file).lines() {
            let turn: Recorded = serde_json::from_str(line).expect("a turn");
            match found.last_mut() {
                Some(last) if last[0].conversation == turn.conversation => last.push(turn),
                _ => found.push(vec![turn]),
            }
        }
    }
    found
}

/// Host of an API.
struct Host {
    api: Api,
    /// Definitions of servers that were read.
    servers: HashMap<String, Value>,
}

impl Host {
    /// Returns the definition of a tool of one's own, or of a server's.
    fn tool(&self, name: &str, definition: &Value) -> Value {
        let schema = &definition["inputSchema"];
        let said = &definition["description"];
        match self.api {
            Api::Anthropic => json!({ "name": name, "description": said, "input_schema": schema }),
            Api::OpenAiChat => json!({ "type": "function", "function": {
                "name": name, "description": said, "parameters": schema } }),
            Api::OpenAiResponses => json!({ "type": "function", "name": name, "description": said,
                "parameters": schema, "strict": false }),
            Api::Gemini => {
                json!({ "name": name, "description": said, "parametersJsonSchema": schema })
            }
        }
    }

    /// Returns the tools of a conversation, with one of the host's own.
    fn tools(&mut self, turns: &[Recorded]) -> Vec<Value> {
        let own = json!({ "description": "Runs it.", "inputSchema": { "type": "object" } });
        let mut tools = vec![self.tool("Bash", &own)];
        let mut known = HashSet::new();
        for called in turns.iter().flat_map(|turn| &turn.calls) {
            if !known.insert(called.tool.clone()) {
                continue;
            }
            let (server, name) = called.tool.split_once('/').expect("server/tool");
            let read = || serde_json::from_str(&data(&format!("servers/{server}.json")));
            let all = self.servers.entry(server.to_owned());
            let all = all.or_insert_with(|| read().expect("a catalog"))["tools"].clone();
            let mut all = all.as_array().expect("a list").iter();
            let found = all.find(|tool| tool["name"] == name).expect("a tool of the server");
            tools.push(self.tool(&called.name(), found));
        }
        tools
    }

    fn asked(&self, text: &str) -> Value {
        match self.api {
            Api::Anthropic => {
                json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
            }
            Api::OpenAiChat => json!({ "role": "user", "content": text }),
            Api::OpenAiResponses => json!({ "type": "message", "role": "user",
                "content": [{ "type": "input_text", "text": text }] }),
            Api::Gemini => json!({ "role": "user", "parts": [{ "text": text }] }),
        }
    }

    /// Returns what the model said, as the history has it.
    fn said(&self, text: &str) -> Value {
        match self.api {
            Api::Anthropic => {
                json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
            }
            Api::OpenAiChat => json!({ "role": "assistant", "content": text }),
            Api::OpenAiResponses => json!({ "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
            Api::Gemini => json!({ "role": "model", "parts": [{ "text": text }] }),
        }
    }

    /// Returns the calls of a turn and their results.
    fn called(&self, turn: usize, calls: &[Called]) -> Vec<Value> {
        let calls: Vec<_> =
            (0..).zip(calls).map(|(at, call)| (format!("c{turn}_{at}"), call)).collect();
        let each = |write: fn(&str, &Called) -> Value| -> Vec<Value> {
            calls.iter().map(|(id, call)| write(id, call)).collect()
        };
        match self.api {
            Api::Anthropic => {
                let uses = each(|id, call| {
                    json!({ "type": "tool_use", "id": id,
                    "name": call.name(), "input": call.arguments })
                });
                let results = each(|id, call| {
                    json!({ "type": "tool_result", "tool_use_id": id,
                    "content": call.result })
                });
                vec![
                    json!({ "role": "assistant", "content": uses }),
                    json!({ "role": "user", "content": results }),
                ]
            }
            Api::OpenAiChat => {
                let made = each(|id, call| {
                    json!({ "id": id, "type": "function", "function": {
                    "name": call.name(), "arguments": call.arguments.to_string() } })
                });
                let said = json!({ "role": "assistant", "content": null, "tool_calls": made });
                let results = each(|id, call| {
                    json!({ "role": "tool", "tool_call_id": id,
                    "content": call.result })
                });
                [vec![said], results].concat()
            }
            Api::OpenAiResponses => {
                let made = each(|id, call| {
                    json!({ "type": "function_call", "call_id": id,
                    "name": call.name(), "arguments": call.arguments.to_string() })
                });
                let results = each(|id, call| {
                    json!({ "type": "function_call_output",
                    "call_id": id, "output": call.result })
                });
                [made, results].concat()
            }
            Api::Gemini => {
                let made = each(|id, call| {
                    json!({ "functionCall": { "id": id,
                    "name": call.name(), "args": call.arguments }, "thoughtSignature": "s" })
                });
                let results = each(|id, call| {
                    json!({ "functionResponse": { "id": id,
                    "name": call.name(), "response": { "output": call.result } } })
                });
                vec![
                    json!({ "role": "model", "parts": made }),
                    json!({ "role": "user", "parts": results }),
                ]
            }
        }
    }

    fn request(&self, tools: &[Value], history: &[Value]) -> String {
        let request = match self.api {
            Api::Anthropic => json!({ "model": "m", "max_tokens": 9, "system": "Be brief.",
                "tools": tools, "messages": history, "metadata": { "user_id": "u" } }),
            Api::OpenAiChat => json!({ "model": "m", "messages": history, "tools": tools }),
            Api::OpenAiResponses => json!({ "model": "m", "store": false, "input": history,
                "tools": tools, "reasoning": { "effort": "low" } }),
            Api::Gemini => json!({ "contents": history,
                "tools": [{ "functionDeclarations": tools }, { "googleSearch": {} }],
                "generationConfig": { "temperature": 0.5 } }),
        };
        request.to_string()
    }
}

/// Returns the host's text of a request that was rewritten: without the descriptions and the tools of the proxy's, with the
/// calls out of their envelopes and the tools that were deferred.
fn restored(turn: &Turn, sent: &str) -> String {
    let api = turn.chat.api;
    let tools = raw::field(sent, "tools").expect("tools");
    let list = match api {
        Api::Gemini => {
            let first = raw::items(tools).expect("a list")[0];
            raw::field(first, "functionDeclarations").expect("functions")
        }
        _ => tools,
    };
    let is_ours = |text: &&str| text.contains(r#""name":"toolgate_"#);
    let own = raw::items(list).expect("a list").into_iter().filter(|text| !is_ours(text));
    let deferred = turn.chat.deferred.iter().map(|tool| tool.text.as_str());
    let all = format!("[{}]", own.chain(deferred).collect::<Vec<_>>().join(","));
    let messages = raw::field(sent, messages_field(api)).expect("messages");
    let mut names = HashMap::new();
    let told = raw::items(messages).expect("a list").into_iter();
    let told = told.filter_map(|text| message(api, text, &mut names)).collect::<Vec<_>>();
    let told = format!("[{}]", told.join(","));
    let mut edits = [(place(sent, list), all), (place(sent, messages), told)];
    edits.sort_by_key(|(place, _)| place.start);
    raw::edited(sent, &edits)
}

/// Returns the host's text of a message; nothing of one that is not the host's. `names` has those of calls, by their IDs.
fn message(api: Api, text: &str, names: &mut HashMap<String, String>) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).expect("JSON");
    for key in ["content", "parts", "output"] {
        match value.get_mut(key) {
            Some(Value::String(text)) => {
                let end = text.find(DESCRIPTIONS).unwrap_or(text.len());
                text.truncate(end);
                text.truncate(text.strip_suffix("\n\n").unwrap_or(text).len());
                if end == 0 {
                    return None;
                }
            }
            Some(Value::Array(parts)) => parts.retain(|part| {
                let text = part["text"].as_str();
                !text.is_some_and(|text| text.starts_with(DESCRIPTIONS))
            }),
            _ => {}
        }
        if value[key] == json!([]) {
            return None;
        }
    }
    let mut answer = match api {
        Api::Anthropic | Api::OpenAiChat => value,
        Api::OpenAiResponses => json!({ "output": [value] }),
        Api::Gemini => json!({ "candidates": [{ "content": value, "finishReason": "STOP" }] }),
    };
    assert_eq!(answer::opened(api, &mut answer, &HashMap::new()).searches, []);
    let mut value = match api {
        Api::Anthropic | Api::OpenAiChat => answer,
        Api::OpenAiResponses => answer["output"][0].take(),
        Api::Gemini => answer["candidates"][0]["content"].take(),
    };
    for part in value.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let call = &part["functionCall"];
        names.insert(text(&call["id"]), text(&call["name"]));
        if let Some(result) = part.get_mut("functionResponse") {
            result["name"] = names[&text(&result["id"])].as_str().into();
        }
    }
    Some(raw::graft(&value, text))
}

/// Rewrites a request that describes these tools, and restores it.
fn check(api: Api, request: &str, described: &[String]) {
    let mut turn = turn(api, request, GateConfig::Off);
    assert_eq!(turn.chat.without(&HashSet::new()).as_deref(), Ok(request));
    turn.active = described.to_vec();
    let sent = turn.request().expect("it is rewritten");
    assert!(sent.contains("toolgate_call_tool"));
    assert_eq!(sent.contains(DESCRIPTIONS), !described.is_empty());
    for tool in &turn.chat.deferred {
        assert!(!sent.contains(&tool.text), "{}", tool.name);
    }
    let restored = restored(&turn, &sent);
    let same = restored.bytes().zip(request.bytes()).take_while(|(one, two)| one == two).count();
    let from = request.floor_char_boundary(same.saturating_sub(80));
    assert!(restored == request, "{:.200} is not {:.200}", &restored[from..], &request[from..]);
    assert_eq!(turn.original(), Ok(None), "the host's bytes are the original");
}

/// Plays all conversations.
fn play(api: Api) {
    let mut host = Host { api, servers: HashMap::new() };
    let conversations = conversations();
    assert!(conversations.len() >= 50);
    for (turns, whole) in conversations.iter().zip(APIS.into_iter().cycle()) {
        let turns = if whole == api { turns } else { &turns[..turns.len().min(BEGINNING)] };
        let tools = host.tools(turns);
        let mut history = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            history.push(host.asked(&turn.query));
            let mut described: Vec<String> = turn.calls.iter().map(Called::name).collect();
            described.dedup();
            check(api, &host.request(&tools, &history), &described);
            if !turn.calls.is_empty() {
                history.extend(host.called(at, &turn.calls));
                check(api, &host.request(&tools, &history), &described);
            }
            history.push(host.said(&turn.answer));
        }
    }
}

#[tokio::test]
async fn rewritten_requests_hold_recorded_conversations_of_anthropics_messages() {
    play(Api::Anthropic);
}

#[tokio::test]
async fn rewritten_requests_hold_recorded_conversations_of_chat_completions() {
    play(Api::OpenAiChat);
}

#[tokio::test]
async fn rewritten_requests_hold_recorded_conversations_of_openais_responses() {
    play(Api::OpenAiResponses);
}

#[tokio::test]
async fn rewritten_requests_hold_recorded_conversations_of_gemini() {
    play(Api::Gemini);
}
