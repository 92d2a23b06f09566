//! A host's chat request: its messages and tools, and the text that they stand in.

use std::ops::Range;

use serde_json::Value;
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::envelope::is_envelope;
use toolgate_llm::strategy::{Api, may_defer};

use crate::config::{LlmConfig, StrategyConfig};
use crate::raw;
use crate::toolset::DeferredTool;

/// Reason for which a request is sent as it came.
pub(crate) type PassReason = &'static str;

/// Chat request some of whose tools may be deferred.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) messages: Vec<Value>,
    /// Texts of the messages, in their order.
    pub(crate) message_texts: Vec<String>,
    /// Definitions of the host's own tools, which stay.
    pub(crate) own: Vec<Value>,
    /// Texts of these, in their order.
    own_texts: Vec<String>,
    /// Tools that may be deferred, in their order.
    pub(crate) deferred: Vec<DeferredTool>,
    /// Mark of a cached prefix that the last deferred tool with one had.
    mark: Option<Value>,
    text: String,
    tools_at: Range<usize>,
    messages_at: Range<usize>,
}

/// Definition in a request.
struct Definition<'a> {
    text: &'a str,
    value: Value,
}

impl Chat {
    /// Reads a request.
    ///
    /// # Errors
    /// The reason for which it must be sent as it came.
    pub(crate) fn read(api: Api, text: String, config: &LlmConfig) -> Result<Self, PassReason> {
        if !matches!(api, Api::Anthropic | Api::OpenAiChat) {
            return Err("api-not-rewritten-yet");
        }
        let fields = raw::fields(&text).ok_or("shape")?;
        let named = |name: &str| fields.iter().find(|field| field.name == name);
        let value = |name: &str| {
            named(name).and_then(|field| serde_json::from_str::<Value>(field.text).ok())
        };
        let tools = named("tools").ok_or("no-tools")?.text;
        let messages = named("messages").ok_or("shape")?.text;
        if value("n").is_some_and(|count| count != 1) {
            return Err("several-choices");
        }
        let message_texts = raw::items(messages).ok_or("shape")?;
        let definitions = definitions(tools).ok_or("shape")?;
        let chosen = chosen_tools(value("tool_choice").as_ref());
        let is_deferred = |definition: &Definition<'_>| {
            let deferred = DeferredTool::read(api, definition.text, &definition.value)?;
            let is_kept = chosen.contains(&deferred.name);
            (!is_kept && may_be_deferred(&deferred.name, config)).then_some(deferred)
        };
        let mut chat = Self {
            api,
            model: value("model")
                .and_then(|model| model.as_str().map(str::to_owned))
                .ok_or("shape")?,
            messages: message_texts
                .iter()
                .map(|text| serde_json::from_str(text))
                .collect::<Result<_, _>>()
                .map_err(|_| "shape")?,
            message_texts: message_texts.into_iter().map(str::to_owned).collect(),
            own: Vec::new(),
            own_texts: Vec::new(),
            deferred: Vec::new(),
            mark: None,
            tools_at: place(&text, tools),
            messages_at: place(&text, messages),
            text: String::new(),
        };
        for definition in definitions {
            if let Some(deferred) = is_deferred(&definition) {
                chat.mark = definition.value.get("cache_control").cloned().or(chat.mark);
                chat.deferred.push(deferred);
            } else {
                chat.own_texts.push(definition.text.to_owned());
                chat.own.push(definition.value);
            }
        }
        chat.check(config)?;
        chat.text = text;
        Ok(chat)
    }

    fn check(&self, config: &LlmConfig) -> Result<(), PassReason> {
        if self.deferred.is_empty() {
            return Err("nothing-to-defer");
        }
        if !may_defer(&self.own) {
            return Err("host-defers");
        }
        let is_ours = |tool: &Value| {
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
            name.is_some_and(|name| name == SEARCH_TOOL_NAME || is_envelope(name))
        };
        if self.own.iter().any(is_ours) {
            return Err("has-toolgate-already");
        }
        let bytes: usize = self.deferred.iter().map(|tool| tool.text.len()).sum();
        if config.strategy == StrategyConfig::Auto && bytes < config.defer_above {
            return Err("few-tools");
        }
        Ok(())
    }

    /// Makes a tool of the host's own of those that can't be deferred, by their names.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        for tool in self.deferred.extract_if(.., |tool| is_kept(&tool.name)) {
            let definition: Value = serde_json::from_str(&tool.text).unwrap_or_default();
            // The mark stays with the tool: a second one might be one too many.
            if self.mark.as_ref() == definition.get("cache_control") {
                self.mark = None;
            }
            self.own.push(definition);
            self.own_texts.push(tool.text);
        }
    }

    /// Returns the text of the request with these tools and messages. `tools` begin with the host's own; `messages` were
    /// made from the host's own and then `further`.
    pub(crate) fn with(&self, tools: &[Value], messages: &[Value], further: &[Value]) -> String {
        let tools = self.tools_text(tools);
        let messages = self.messages_text(messages, further);
        let mut edits = [(&self.tools_at, tools), (&self.messages_at, messages)];
        edits.sort_by_key(|(place, _)| place.start);
        let mut text = String::with_capacity(self.text.len());
        let mut end = 0;
        for (place, new) in &edits {
            text.push_str(&self.text[end..place.start]);
            text.push_str(new);
            end = place.end;
        }
        text.push_str(&self.text[end..]);
        text
    }

    /// Returns the bytes of the request that stay whatever is deferred.
    pub(crate) fn bytes_kept(&self) -> usize {
        let deferred: usize = self.deferred.iter().map(|tool| tool.text.len() + 1).sum();
        self.text.len().saturating_sub(deferred)
    }

    fn tools_text(&self, tools: &[Value]) -> String {
        let ours = tools.get(self.own.len()..).unwrap_or_default();
        let mut texts: Vec<String> = self.own_texts.clone();
        texts.extend(ours.iter().map(Value::to_string));
        if let (Some(mark), Some(last), Some(tool)) = (&self.mark, texts.last_mut(), ours.last()) {
            let mut tool = tool.clone();
            tool["cache_control"] = mark.clone();
            *last = tool.to_string();
        }
        format!("[{}]", texts.join(","))
    }

    fn messages_text(&self, messages: &[Value], further: &[Value]) -> String {
        let further_texts = further.iter().map(Value::to_string);
        let mut before =
            self.messages.iter().zip(self.message_texts.iter().cloned()).collect::<Vec<_>>();
        before.extend(further.iter().zip(further_texts));
        let mut before = before.into_iter().peekable();
        let mut texts = Vec::with_capacity(messages.len());
        for message in messages {
            // Where no message takes a text, the addition is one of its own.
            let is_next = |(next, _): &(&Value, String)| {
                next["role"] == message["role"] && !is_added(next, message)
            };
            match before.next_if(is_next) {
                Some((_, text)) => texts.push(raw::graft(message, &text)),
                None => texts.push(message.to_string()),
            }
        }
        format!("[{}]", texts.join(","))
    }
}

/// Returns true if a message is an addition and not what became of the host's.
fn is_added(before: &Value, message: &Value) -> bool {
    let text = |message: &Value| message["content"].as_str().map(str::to_owned);
    let begins = |text: String| text.starts_with("[Toolgate] More tools.");
    text(message).is_some_and(begins)
        && text(before) != text(message)
        && !text(before).is_some_and(|before| before.is_empty())
}

fn definitions(tools: &str) -> Option<Vec<Definition<'_>>> {
    let read = |text| Some(Definition { text, value: serde_json::from_str(text).ok()? });
    raw::items(tools)?.into_iter().map(read).collect()
}

/// Returns the place of a part within its text.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Returns the names of the tools that the host wants called, or that it allows alone.
fn chosen_tools(choice: Option<&Value>) -> Vec<String> {
    let Some(choice) = choice else { return Vec::new() };
    let allowed = choice["allowed_tools"]["tools"].as_array();
    let named = std::iter::once(choice).chain(allowed.into_iter().flatten());
    let name = |tool: &Value| {
        let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
        name.map(str::to_owned)
    };
    named.filter_map(name).collect()
}

fn may_be_deferred(name: &str, config: &LlmConfig) -> bool {
    let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(name, pattern));
    matches(&config.defer) && !matches(&config.keep)
}

/// Returns true if a text is like a pattern in which `*` stands for any characters.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// Returns what the user asked for last: the texts of the newest message of theirs that has any.
pub(crate) fn intent(messages: &[Value]) -> Option<String> {
    let said = |message: &Value| {
        let texts: Vec<&str> = match &message["content"] {
            Value::String(text) => vec![text],
            Value::Array(blocks) => {
                blocks.iter().filter_map(|block| block["text"].as_str()).collect()
            }
            _ => Vec::new(),
        };
        // What a host puts beside the user's words.
        let own =
            texts.into_iter().filter(|text| !text.trim_start().starts_with("<system-reminder>"));
        let text = own.collect::<Vec<_>>().join("\n");
        let text = text.trim();
        (!text.is_empty()).then(|| tail(text, INTENT_MAX).to_owned())
    };
    messages.iter().rev().filter(|message| message["role"] == "user").find_map(said)
}

/// Most bytes of a user's words that are routed by; the last ones count.
const INTENT_MAX: usize = 8 << 10;

fn tail(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOL: &str = r#"{"name":"mcp__git__log","description":"Logs","input_schema":{ "type":"object","x":1.0 }}"#;
    const OWN: &str = r#"{"name":"Bash", "input_schema":{ "type" : "object" }}"#;

    fn config(strategy: StrategyConfig) -> LlmConfig {
        LlmConfig { strategy, ..LlmConfig::default() }
    }

    fn read(text: &str) -> Result<Chat, PassReason> {
        Chat::read(Api::Anthropic, text.to_owned(), &config(StrategyConfig::Envelope))
    }

    fn request(tools: &str, more: &str) -> String {
        format!(
            r#"{{ "n1":1.50e3,"tools": [{tools}], "model":"m", "messages" : [ {{"role":"user","content":"h\u00e9"}} ]{more} }}"#
        )
    }

    #[test]
    fn only_tools_and_messages_are_edited() {
        let text = request(&format!("{OWN} , {TOOL}"), r#", "big":12345678901234567890123"#);
        let chat = read(&text).expect("a chat");
        assert_eq!((chat.own.len(), chat.deferred.len()), (1, 1));
        let tools = [chat.own[0].clone(), json!({ "name": "toolgate_call_tool" })];
        let mut messages = chat.messages.clone();
        messages[0]["content"] = json!("hé\n\nmore");
        let edited = chat.with(&tools, &messages, &[]);
        let expected = format!(
            r#"{{ "n1":1.50e3,"tools": [{OWN},{{"name":"toolgate_call_tool"}}], "model":"m", "messages" : [{{"role":"user","content":"h\u00e9\n\nmore"}}], "big":12345678901234567890123 }}"#
        );
        assert_eq!(edited, expected);
    }

    #[test]
    fn messages_that_are_added_have_a_text_of_their_own() {
        let chat = read(&request(TOOL, "")).expect("a chat");
        let further = [
            json!({ "role": "assistant", "content": [] }),
            json!({ "role": "user", "content": [] }),
        ];
        let added = json!({ "role": "user", "content": "[Toolgate] More tools. x" });
        let mut messages = vec![chat.messages[0].clone(), added.clone()];
        messages.extend(further.clone());
        let edited: Value =
            serde_json::from_str(&chat.with(&[], &messages, &further)).expect("JSON");
        assert_eq!(edited["messages"], json!(messages));
    }

    #[test]
    fn the_mark_of_a_cached_prefix_moves_to_the_last_tool() {
        let marked = r#"{"name":"mcp__a__b","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}"#;
        let chat = read(&request(&format!("{marked},{OWN}"), "")).expect("a chat");
        let tools = [chat.own[0].clone(), json!({ "name": "x" })];
        let edited: Value =
            serde_json::from_str(&chat.with(&tools, &chat.messages, &[])).expect("JSON");
        assert_eq!(edited["tools"][1]["cache_control"]["ttl"], "1h");
        assert_eq!(edited["tools"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_tool_that_stays_keeps_its_mark() {
        let marked =
            r#"{"name":"mcp__a__b","input_schema":{},"cache_control":{"type":"ephemeral"}}"#;
        let mut chat = read(&request(&format!("{TOOL},{marked}"), "")).expect("a chat");
        chat.keep(|name| name == "mcp__a__b");
        let tools = [chat.own[0].clone(), json!({ "name": "x" })];
        let edited = chat.with(&tools, &chat.messages, &[]);
        assert_eq!(edited.matches("cache_control").count(), 1, "{edited}");
    }

    #[test]
    fn what_is_in_doubt_is_sent_as_it_came() {
        let choice = r#", "tool_choice":{"type":"tool","name":"mcp__git__log"}"#;
        let allowed = r#", "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"mcp__git__log"}}]}}"#;
        let hosts = r#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#;
        let deferred = r#"{"name":"mcp__a__c","input_schema":{},"defer_loading":true}"#;
        let ours = r#"{"name":"toolgate_search_tools","input_schema":{}}"#;
        for (text, reason) in [
            ("x".to_owned(), "shape"),
            ("[]".to_owned(), "shape"),
            (r#"{"model":"m","messages":[]}"#.to_owned(), "no-tools"),
            (r#"{"model":"m","tools":[],"messages":{}}"#.to_owned(), "shape"),
            (r#"{"model":7,"tools":[],"messages":[]}"#.to_owned(), "shape"),
            (r#"{"model":"m","model":"m","tools":[],"messages":[]}"#.to_owned(), "shape"),
            (request("", ""), "nothing-to-defer"),
            (request(OWN, ""), "nothing-to-defer"),
            (request(TOOL, choice), "nothing-to-defer"),
            (request(TOOL, allowed), "nothing-to-defer"),
            (request(&format!("{TOOL},{hosts}"), ""), "host-defers"),
            (request(&format!("{TOOL},{deferred}"), ""), "host-defers"),
            (request(&format!("{TOOL},{ours}"), ""), "has-toolgate-already"),
            (request(TOOL, r#", "n":2"#), "several-choices"),
        ] {
            assert_eq!(read(&text).map(|_| ()), Err(reason), "{text}");
        }
        let few = Chat::read(Api::Anthropic, request(TOOL, ""), &config(StrategyConfig::Auto));
        assert_eq!(few.map(|_| ()), Err("few-tools"));
        let gemini = Chat::read(Api::Gemini, request(TOOL, ""), &config(StrategyConfig::Envelope));
        assert_eq!(gemini.map(|_| ()), Err("api-not-rewritten-yet"));
    }

    #[test]
    fn patterns_choose_tools() {
        let config = LlmConfig {
            defer: vec!["mcp_*".to_owned(), "github_*".to_owned()],
            keep: vec!["*__always".to_owned()],
            ..LlmConfig::default()
        };
        for name in ["mcp__a__b", "mcp_a_b", "github_x"] {
            assert!(may_be_deferred(name, &config), "{name}");
        }
        for name in ["Bash", "mcp__a__always", "my_github_x"] {
            assert!(!may_be_deferred(name, &config), "{name}");
        }
    }

    #[test]
    fn the_intent_is_what_the_user_said_last() {
        let messages = [
            json!({ "role": "user", "content": "first" }),
            json!({ "role": "user", "content": [
                { "type": "text", "text": "<system-reminder>x</system-reminder>" },
                { "type": "text", "text": "second" }] }),
            json!({ "role": "assistant", "content": "no" }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1" }] }),
        ];
        assert_eq!(intent(&messages).as_deref(), Some("second"));
        assert_eq!(intent(&messages[2..]), None);
        let long = format!("{}é", "x".repeat(INTENT_MAX));
        assert!(
            intent(&[json!({ "role": "user", "content": long })])
                .is_some_and(|text| text.ends_with('é'))
        );
    }
}
