//! A host's chat request: its messages and tools, and the text that they stand in.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::envelope::is_envelope;
use toolgate_llm::strategy::{Api, is_like, may_defer};

use crate::config::{LlmConfig, StrategyConfig};
use crate::definitions::{Definitions, place};
use crate::kept::PREVIOUS;
use crate::toolset::{DeferredTool, Names, keep_apart};
use crate::{gemini, raw, responses};

/// Reason for which a request is sent as it came.
pub(crate) type PassReason = &'static str;

/// Chat request some of whose tools may be deferred.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) api: Api,
    pub(crate) model: String,
    /// Bytes of the system prompt, where it is not among the messages.
    pub(crate) system_bytes: usize,
    pub(crate) messages: Vec<Value>,
    /// Texts of the messages, in their order.
    pub(crate) message_texts: Vec<String>,
    /// Definitions of the host's own tools, which stay.
    pub(crate) own: Vec<Value>,
    definitions: Definitions,
    /// Names of the tools in namespaces that may be deferred.
    pub(crate) names: Names,
    /// Tools that may be deferred, in their order.
    pub(crate) deferred: Vec<DeferredTool>,
    /// Bytes of the tools that are withheld.
    withheld_bytes: usize,
    /// Mark of a cached prefix that the last deferred tool with one had.
    mark: Option<Value>,
    /// ID of the answer that the request goes on from, whose conversation the provider has.
    pub(crate) previous: Option<String>,
    /// True if the provider keeps the answer for further requests.
    pub(crate) is_kept: bool,
    text: String,
    /// Text of the tools that answers tell the host, once it was asked for.
    shown_tools: OnceLock<Arc<str>>,
    tools_at: Range<usize>,
    messages_at: Range<usize>,
}

impl Chat {
    /// Reads a request. `path` is that of its URL, which names the model of some APIs.
    ///
    /// # Errors
    /// The reason for which it must be sent as it came.
    pub(crate) fn read(
        api: Api,
        path: &str,
        text: String,
        config: &LlmConfig,
    ) -> Result<Self, PassReason> {
        let fields = raw::fields(&text).ok_or("shape")?;
        let named = |name: &str| fields.iter().find(|field| field.name == name);
        let body = settings(api, &fields);
        let listed = Listed::read(api, &fields, &body, config)?;
        let Listed { tools, definitions, deferred, mark } = listed;
        let messages = named(messages_field(api)).ok_or("shape")?.text;
        doubt(api, &body)?;
        let conversation = conversation(api, messages)?;
        let text_of = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let model = match api {
            Api::Gemini => gemini::model(path).map(str::to_owned),
            _ => text_of("model"),
        };
        let chat = Self {
            api,
            model: model.ok_or("shape")?,
            system_bytes: SYSTEM
                .iter()
                .filter_map(|name| named(name))
                .map(|field| field.text.len())
                .sum(),
            messages: conversation.messages,
            message_texts: conversation.texts,
            own: definitions.own(),
            definitions,
            names: names_of(&deferred),
            deferred,
            withheld_bytes: 0,
            mark,
            previous: text_of(PREVIOUS).filter(|_| api == Api::OpenAiResponses),
            is_kept: body.get("store") != Some(&Value::Bool(false)),
            shown_tools: OnceLock::new(),
            tools_at: place(&text, tools),
            messages_at: place(&text, messages),
            text: String::new(),
        };
        chat.check(config)?;
        Ok(Self { text, ..chat })
    }

    /// Returns the place of the model's last answer among the messages: there ended the request before. `None` if it said nothing.
    pub(crate) fn answered_at(&self) -> Option<usize> {
        let last = self.messages.iter().rposition(is_of_model)?;
        let before = self.messages[..last].iter().rposition(|message| !is_of_model(message));
        Some(before.map_or(0, |at| at + 1))
    }

    /// Returns the bytes of the messages from a place on.
    pub(crate) fn bytes_from(&self, at: usize) -> usize {
        self.message_texts.iter().skip(at).map(String::len).sum()
    }

    fn check(&self, config: &LlmConfig) -> Result<(), PassReason> {
        if self.deferred.is_empty() {
            return Err("nothing-to-defer");
        }
        let inner = self.own.iter().filter_map(|tool| tool["tools"].as_array());
        let all_may = inner.into_iter().all(|tools| may_defer(tools));
        if !may_defer(&self.own) || !all_may {
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

    /// Makes tools of the host's own of those that can't be deferred, by their names. Calls of the others have the names
    /// that models get from then on.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        for tool in self.deferred.extract_if(.., |tool| is_kept(&tool.name)) {
            let definition: Value = serde_json::from_str(&tool.text).unwrap_or_default();
            // The mark stays with the tool: a second one might be one too many.
            if self.mark.as_ref() == definition.get("cache_control") {
                self.mark = None;
            }
            self.definitions.put_back(tool.list, tool.text);
        }
        self.own = self.definitions.own();
        self.join_names(&names_of(&self.deferred));
    }

    /// Writes calls of tools in namespaces under the names that models get in their place.
    fn join_names(&mut self, names: &Names) {
        for message in &mut self.messages {
            responses::join_names(message, names);
        }
    }

    /// Takes tools out of the request, by their names: also a second one of such a name, which is none that may be deferred.
    pub(crate) fn withhold(&mut self, withheld: &HashSet<String>) {
        if withheld.is_empty() {
            return;
        }
        let taken = self.deferred.extract_if(.., |tool| withheld.contains(&tool.name));
        let taken: Vec<DeferredTool> = taken.collect();
        self.withheld_bytes += taken.iter().map(|tool| tool.text.len() + 1).sum::<usize>();
        // The envelope takes calls of them as well.
        self.join_names(&names_of(&taken));
        self.definitions.remove(withheld);
        self.own = self.definitions.own();
    }

    /// Returns the text of the request as it came, without some of its tools.
    ///
    /// # Errors
    /// [`Unsendable`] if the provider takes no such request.
    pub(crate) fn without(&self, withheld: &HashSet<String>) -> Result<String, Unsendable> {
        without(self.api, &self.text, withheld)
    }

    /// Returns the text of the request with these tools and messages. `tools` begin with the host's own; `messages` were
    /// made from the host's own and then `further`.
    pub(crate) fn with(&self, tools: &[Value], messages: &[Value], further: &[Value]) -> String {
        let tools = self.tools_text(tools);
        let messages = self.messages_text(messages, further);
        let mut edits = [(self.tools_at.clone(), tools), (self.messages_at.clone(), messages)];
        edits.sort_by_key(|(place, _)| place.start);
        raw::edited(&self.text, &edits)
    }

    /// Returns the text of the tools that answers of OpenAI's Responses tell the host, as [`responses::definitions`] has them.
    pub(crate) fn shown_tools(&self) -> Arc<str> {
        let shown = || match self.api {
            Api::OpenAiResponses => responses::definitions(&self.text[self.tools_at.clone()]),
            Api::Anthropic | Api::OpenAiChat | Api::Gemini => String::new(),
        };
        Arc::clone(self.shown_tools.get_or_init(|| shown().into()))
    }

    /// Returns the bytes of the request that stay whatever is deferred.
    pub(crate) fn bytes_kept(&self) -> usize {
        let deferred: usize = self.deferred.iter().map(|tool| tool.text.len() + 1).sum();
        self.text.len().saturating_sub(deferred + self.withheld_bytes)
    }

    fn tools_text(&self, tools: &[Value]) -> String {
        let mut ours = tools.get(self.own.len()..).unwrap_or_default().to_vec();
        if let (Some(mark), Some(last)) = (&self.mark, ours.last_mut()) {
            last["cache_control"] = mark.clone();
        }
        self.definitions.text(&ours)
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
                next["role"] == message["role"]
                    && next["type"] == message["type"]
                    && !is_added(next, message)
            };
            match before.next_if(is_next) {
                Some((_, text)) => texts.push(raw::graft(message, &text)),
                None => texts.push(message.to_string()),
            }
        }
        format!("[{}]", texts.join(","))
    }
}

/// Tools of a request as the host listed them.
struct Listed<'a> {
    /// Text of the list.
    tools: &'a str,
    definitions: Definitions,
    /// Tools that may be deferred, in their order. They are not among the definitions.
    deferred: Vec<DeferredTool>,
    /// Mark of a cached prefix that the last of them with one has.
    mark: Option<Value>,
}

impl<'a> Listed<'a> {
    /// Reads the tools among the fields of a request with these settings.
    fn read(
        api: Api,
        fields: &[raw::Field<'a>],
        settings: &Map<String, Value>,
        config: &LlmConfig,
    ) -> Result<Self, PassReason> {
        let tools = fields.iter().find(|field| field.name == "tools").ok_or("no-tools")?.text;
        let chosen = chosen(api, settings);
        let mut deferred = Vec::new();
        let mut known = HashSet::new();
        let mut mark = None;
        let definitions = Definitions::read(api, tools, |given| {
            let Some(mut tool) = DeferredTool::read(api, given) else { return false };
            let name = tool.within.as_ref().map_or(&tool.name, |within| &within.name);
            let is_kept = chosen.contains(&tool.name) || chosen.contains(name);
            // Of two of one name, a call could mean either.
            if is_kept || !may_be_deferred(&tool.name, config) || !known.insert(tool.name.clone()) {
                return false;
            }
            mark = given.value.get("cache_control").cloned().or(mark.take());
            tool.take_server(&config.defer);
            deferred.push(tool);
            true
        });
        let definitions = definitions.ok_or("shape")?;
        keep_apart(&mut deferred);
        Ok(Self { tools, definitions, deferred, mark })
    }
}

/// Returns the tools of a request that may be deferred. Its messages are not read.
///
/// # Errors
/// The reason for which it can't be read.
pub(crate) fn deferred(
    api: Api,
    text: &str,
    config: &LlmConfig,
) -> Result<Vec<DeferredTool>, PassReason> {
    let fields = raw::fields(text).ok_or("shape")?;
    let listed = Listed::read(api, &fields, &settings(api, &fields), config)?;
    Ok(listed.deferred)
}

/// Reason that a request with tools that are withheld is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsendable {
    /// No provider takes it without them: the host has a tool called, or Anthropic's conversation has calls, and none is left.
    NothingLeft,
    /// The proxy failed to take them out.
    Failed,
}

impl Unsendable {
    /// Returns the name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NothingLeft => "quarantined",
            Self::Failed => "panic",
        }
    }
}

/// Returns the text of a request as it came, without some of its tools. If none is left to call, what the host says of calls
/// goes too.
///
/// # Errors
/// [`Unsendable`] if the provider takes no such request.
pub(crate) fn without(
    api: Api,
    text: &str,
    withheld: &HashSet<String>,
) -> Result<String, Unsendable> {
    // It could be read before.
    let fields = raw::fields(text).ok_or(Unsendable::Failed)?;
    let tools = fields.iter().find(|field| field.name == "tools");
    let tools = tools.ok_or(Unsendable::Failed)?.text;
    let mut definitions = Definitions::read(api, tools, |_| false).ok_or(Unsendable::Failed)?;
    definitions.remove(withheld);
    let left = definitions.text(&[]);
    if definitions.has_callable() {
        return Ok(raw::edited(text, &[(place(text, tools), left)]));
    }
    let messages = fields.iter().find(|field| field.name == messages_field(api));
    let has_calls = api == Api::Anthropic && messages.is_some_and(|field| has_calls(field.text));
    if has_calls || is_forced(api, &settings(api, &fields)) {
        return Err(Unsendable::NothingLeft);
    }
    let fields = fields.iter().filter_map(|field| {
        let text = match field.name.as_str() {
            "tools" if left == "[]" => None,
            "tools" => Some(left.clone()),
            "tool_choice" | "parallel_tool_calls" if api != Api::Gemini => None,
            "toolConfig" | "tool_config" if api == Api::Gemini => {
                Some(gemini::without_calling(field.text))
            }
            _ => Some(field.text.to_owned()),
        };
        Some((field.name.as_str(), text?))
    });
    Ok(raw::object(fields))
}

/// Returns true if the host has the model call a tool, whatever it would say.
fn is_forced(api: Api, settings: &Map<String, Value>) -> bool {
    if api == Api::Gemini {
        return gemini::is_forced(settings);
    }
    let choice = settings.get("tool_choice").unwrap_or(&Value::Null);
    let kind = choice["type"].as_str().or(choice.as_str());
    !choice.is_null() && !kind.is_some_and(|kind| ["auto", "none"].contains(&kind))
}

/// Returns true if there are calls in Anthropic's messages, or results of calls. It takes those with tools alone.
fn has_calls(messages: &str) -> bool {
    let messages: Vec<Value> = serde_json::from_str(messages).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let mut kinds = blocks.filter_map(|block| block["type"].as_str());
    kinds.any(|kind| ["tool_use", "tool_result"].contains(&kind))
}

/// Returns true if a message is an addition and not what became of the host's.
fn is_added(before: &Value, message: &Value) -> bool {
    let text = |message: &Value| message["content"].as_str().map(str::to_owned);
    let begins = |text: String| text.starts_with("[Toolgate] More tools.");
    text(message).is_some_and(begins)
        && text(before) != text(message)
        && !text(before).is_some_and(|before| before.is_empty())
}

/// Messages of a request, and their texts.
struct Conversation {
    messages: Vec<Value>,
    texts: Vec<String>,
}

/// Reads the messages of a request.
fn conversation(api: Api, text: &str) -> Result<Conversation, PassReason> {
    if api == Api::OpenAiResponses && text.trim_start().starts_with('"') {
        let message = format!(r#"{{"role":"user","content":{text}}}"#);
        let value = serde_json::from_str(&message).map_err(|_| "shape")?;
        return Ok(Conversation { messages: vec![value], texts: vec![message] });
    }
    let texts = raw::items(text).ok_or("shape")?;
    let messages: Result<Vec<Value>, _> =
        texts.iter().map(|text| serde_json::from_str(text)).collect();
    let messages = messages.map_err(|_| "shape")?;
    let mut read = Conversation { messages: Vec::new(), texts: Vec::new() };
    if api == Api::OpenAiResponses && messages.iter().any(responses::is_deferring) {
        return Err("host-defers");
    }
    for (at, (message, text)) in messages.iter().zip(texts).enumerate() {
        if api == Api::OpenAiResponses && responses::is_lone(message, messages.get(at + 1)) {
            continue;
        }
        read.messages.push(message.clone());
        read.texts.push(text.to_owned());
    }
    Ok(read)
}

/// Returns the name of the field that messages stand in.
pub(crate) fn messages_field(api: Api) -> &'static str {
    match api {
        Api::Anthropic | Api::OpenAiChat => "messages",
        Api::OpenAiResponses => "input",
        Api::Gemini => "contents",
    }
}

/// Reads the fields of a request beside its tools and messages.
fn settings(api: Api, fields: &[raw::Field<'_>]) -> Map<String, Value> {
    let is_setting =
        |field: &&raw::Field<'_>| ![messages_field(api), "tools"].contains(&field.name.as_str());
    let read = |field: &raw::Field<'_>| {
        // Texts such as instructions are long, and say nothing here.
        let is_long = field.text.len() > SETTING_MAX;
        let value = if is_long { Value::Null } else { serde_json::from_str(field.text).ok()? };
        Some((field.name.clone(), value))
    };
    fields.iter().filter(is_setting).filter_map(read).collect()
}

/// Names of the system prompt in the APIs that have it beside the messages: Anthropic's, OpenAI's of Responses, and both of Gemini's.
const SYSTEM: [&str; 4] = ["system", "instructions", "systemInstruction", "system_instruction"];

/// Most bytes of a setting that is read.
const SETTING_MAX: usize = 64 << 10;

/// Returns the reason for which a request with these settings is sent as it came.
fn doubt(api: Api, body: &Map<String, Value>) -> Result<(), PassReason> {
    let doubt = match api {
        Api::Anthropic | Api::OpenAiChat => {
            body.get("n").is_some_and(|count| *count != 1).then_some("several-choices")
        }
        Api::OpenAiResponses => responses::doubt(body),
        Api::Gemini => gemini::doubt(body),
    };
    doubt.map_or(Ok(()), Err)
}

/// Returns the names of the tools that the host wants called, or that it allows alone.
fn chosen(api: Api, body: &Map<String, Value>) -> Vec<String> {
    if api == Api::Gemini {
        return gemini::chosen(body);
    }
    let Some(choice) = body.get("tool_choice") else { return Vec::new() };
    let lists = [&choice["allowed_tools"]["tools"], &choice["tools"]];
    let allowed = lists.into_iter().filter_map(Value::as_array).flatten();
    let name = |tool: &Value| {
        let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
        name.map(str::to_owned)
    };
    std::iter::once(choice).chain(allowed).filter_map(name).collect()
}

fn names_of(tools: &[DeferredTool]) -> Names {
    let named = tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.within.clone()?)));
    named.collect()
}

fn may_be_deferred(name: &str, config: &LlmConfig) -> bool {
    let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(name, pattern));
    matches(&config.defer) && !matches(&config.keep)
}

/// Returns what the user asked for last: the texts of the newest message of theirs that has any.
pub(crate) fn intent(messages: &[Value]) -> Option<String> {
    let said = |message: &Value| {
        let blocks = [&message["content"], &message["parts"]];
        let blocks = blocks.into_iter().filter_map(Value::as_array).flatten();
        let mut texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        texts.extend(message["content"].as_str());
        // What a host puts beside the user's words.
        let of_host = ["<system-reminder>", "<environment_context>", "<session_context>"];
        let is_own = |text: &&str| !of_host.iter().any(|mark| text.trim_start().starts_with(mark));
        let own = texts.into_iter().filter(is_own);
        let text = own.collect::<Vec<_>>().join("\n");
        let text = text.trim();
        (!text.is_empty()).then(|| tail(text, INTENT_MAX).to_owned())
    };
    // Gemini's messages may name no role.
    let is_users = |message: &&Value| {
        message["role"] == "user" || (message["role"].is_null() && message["parts"].is_array())
    };
    messages.iter().rev().filter(is_users).find_map(said)
}

/// Most bytes of a user's words that are routed by; the last ones count.
const INTENT_MAX: usize = 8 << 10;

fn tail(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    &text[start..]
}

/// Returns true if the model wrote a message. Items of OpenAI's Responses that are no messages are calls and thoughts, or outputs.
fn is_of_model(message: &Value) -> bool {
    match message["role"].as_str() {
        Some(role) => matches!(role, "assistant" | "model"),
        None => message["type"].as_str().is_some_and(|kind| !kind.ends_with("_output")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_llm::envelope::{CALL_TOOL_NAME, wrap_history};

    use super::*;

    const TOOL: &str = r#"{"name":"mcp__git__log","description":"Logs","input_schema":{ "type":"object","x":1.0 }}"#;
    const OWN: &str = r#"{"name":"Bash", "input_schema":{ "type" : "object" }}"#;

    fn config(strategy: StrategyConfig) -> LlmConfig {
        LlmConfig { strategy, ..LlmConfig::default() }
    }

    fn read(text: &str) -> Result<Chat, PassReason> {
        Chat::read(Api::Anthropic, "", text.to_owned(), &config(StrategyConfig::Envelope))
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
    fn the_last_answer_of_the_model_begins_behind_the_request_before() {
        let at = |messages: Value| {
            let chat = read(&request(TOOL, "")).expect("a chat");
            let messages = messages.as_array().cloned().unwrap_or_default();
            Chat { messages, ..chat }.answered_at()
        };
        let said = |role: &str| json!({ "role": role, "content": "x" });
        let item = |kind: &str| json!({ "type": kind });
        assert_eq!(at(json!([said("system"), said("user")])), None);
        assert_eq!(at(json!([said("user"), said("assistant"), said("user")])), Some(1));
        assert_eq!(at(json!([said("assistant"), said("user"), said("model")])), Some(2));
        assert_eq!(at(json!([said("model"), said("user"), said("user")])), Some(0));
        let items = [said("user"), item("reasoning"), item("function_call")];
        let outputs = [item("function_call_output"), said("user")];
        assert_eq!(at(json!([&items[..], &outputs[..]].concat())), Some(1));
        let chat = read(&request(TOOL, "")).expect("a chat");
        assert_eq!(chat.bytes_from(0), r#"{"role":"user","content":"h\u00e9"}"#.len());
        assert_eq!(chat.bytes_from(1), 0);
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
    fn withheld_tools_are_in_no_request() {
        let second = r#"{"name":"mcp__git__log","description":"Other","input_schema":{}}"#;
        let other = r#"{"name":"mcp__git__diff", "input_schema":{ "x":2.0 }}"#;
        let mut chat = read(&request(&[OWN, TOOL, other, second].join(" , "), "")).expect("a chat");
        let withheld = HashSet::from(["mcp__git__log".to_owned()]);
        let original = request(&format!("{OWN},{other}"), "");
        assert_eq!(chat.without(&withheld), Ok(original));
        chat.withhold(&withheld);
        let names: Vec<&str> = chat.deferred.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names.as_slice(), chat.own.len()), (&["mcp__git__diff"][..], 1));
        let sent = chat.with(&chat.own, &chat.messages, &[]);
        assert!(sent.contains(&format!(r#""tools": [{OWN}], "model""#)), "{sent}");
        let mut within = read_by(
            Api::OpenAiResponses,
            &format!(
                r#"{{"model":"m","tools":[{{"type":"local_shell"}},{NAMESPACE}],"input":[ 1.0 ]}}"#
            ),
        )
        .expect("a chat");
        let alone = r#"{"model":"m","tools":[{"type":"local_shell"}],"input":[ 1.0 ]}"#;
        assert_eq!(within.without(&withheld), Ok(alone.to_owned()));
        within.withhold(&withheld);
        assert!(within.deferred.is_empty());
    }

    fn poison() -> HashSet<String> {
        HashSet::from(["mcp__git__log".to_owned()])
    }

    /// Returns a request with `mcp__git__log` alone, and with further fields.
    fn alone(api: Api, more: &str) -> String {
        let tool = match api {
            Api::Anthropic => TOOL,
            Api::OpenAiChat => {
                r#"{"type":"function","function":{"name":"mcp__git__log","parameters":{}}}"#
            }
            Api::OpenAiResponses => NAMESPACE,
            Api::Gemini => r#"{"functionDeclarations":[{"name":"mcp__git__log"}]}"#,
        };
        format!(r#"{{"x":1.0, "tools":[{tool}],{more}}}"#)
    }

    #[test]
    fn a_request_that_lost_all_tools_says_nothing_of_calls() {
        for (api, more, left) in [
            (
                Api::Anthropic,
                r#""tool_choice":{"type":"auto"},"messages":[{"role":"user","content":[{"type":"text"}]}]"#,
                r#""messages":[{"role":"user","content":[{"type":"text"}]}]"#,
            ),
            (
                Api::OpenAiChat,
                r#""tool_choice":"auto","parallel_tool_calls":false,"messages":[{"tool_calls":[{ }]}]"#,
                r#""messages":[{"tool_calls":[{ }]}]"#,
            ),
            (
                Api::OpenAiResponses,
                r#""tool_choice":"none","parallel_tool_calls":true,"input":"h\u00e9""#,
                r#""input":"h\u00e9""#,
            ),
            (
                Api::Gemini,
                r#""contents":[],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"},"retrievalConfig":{ }}"#,
                r#""contents":[],"toolConfig":{"retrievalConfig":{ }}"#,
            ),
        ] {
            let expected = format!(r#"{{"x":1.0,{left}}}"#);
            assert_eq!(without(api, &alone(api, more), &poison()), Ok(expected));
        }
        let beside = r#"{"tools":[{"functionDeclarations":[{"name":"mcp__git__log"}]},{ "googleSearch":{}}],"tool_config":{"function_calling_config":{"mode":"AUTO"}}}"#;
        let left = r#"{"tools":[{ "googleSearch":{}}],"tool_config":{}}"#;
        assert_eq!(without(Api::Gemini, beside, &poison()), Ok(left.to_owned()));
    }

    #[test]
    fn a_request_that_must_have_tools_is_not_sent_without() {
        for (api, more) in [
            (Api::Anthropic, r#""tool_choice":{"type":"any"},"messages":[]"#),
            (Api::Anthropic, r#""messages":[{"content":[{"type":"tool_use","name":"x"}]}]"#),
            (Api::Anthropic, r#""messages":[{"content":[{"type":"tool_result"}]}]"#),
            (Api::OpenAiChat, r#""tool_choice":"required","messages":[]"#),
            (
                Api::OpenAiResponses,
                r#""tool_choice":{"type":"allowed_tools","mode":"required","tools":[]},"input":[]"#,
            ),
            (Api::Gemini, r#""toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"contents":[]"#),
        ] {
            let left = without(api, &alone(api, more), &poison());
            assert_eq!(left, Err(Unsendable::NothingLeft), "{more}");
        }
        let more = r#""tool_choice":{"type":"any"},"messages":[]"#;
        let beside = alone(Api::Anthropic, more).replace(TOOL, &format!("{TOOL},{OWN}"));
        assert!(without(Api::Anthropic, &beside, &poison()).is_ok(), "one is left to call");
    }

    #[test]
    fn calls_of_a_withheld_tool_in_a_namespace_stand_in_the_envelope() {
        let other = r#"{"type":"function","name":"mcp__a__b","parameters":{}}"#;
        let call = r#"{"type":"function_call","call_id":"c","namespace":"mcp__git","name":"log","arguments":"{}"}"#;
        let text = format!(r#"{{"model":"m","tools":[{NAMESPACE},{other}],"input":[{call}]}}"#);
        let mut chat = read_by(Api::OpenAiResponses, &text).expect("a chat");
        chat.withhold(&poison());
        chat.keep(|_| false);
        wrap_history(Api::OpenAiResponses, &mut chat.messages, &HashSet::new());
        let arguments = r#"{"name":"mcp__git__log","arguments":{}}"#;
        let expected = json!({ "type": "function_call", "call_id": "c", "name": CALL_TOOL_NAME,
            "arguments": arguments });
        assert_eq!(chat.messages, [expected]);
    }

    #[test]
    fn what_is_withheld_twice_moves_no_tool_out_of_its_namespace() {
        let twice = r#"{"type":"function","name":"mcp__a__b","parameters":{}}"#;
        let text =
            format!(r#"{{"model":"m","tools":[{twice},{twice},{NAMESPACE}],"input":[ 1.0 ]}}"#);
        let mut chat = read_by(Api::OpenAiResponses, &text).expect("a chat");
        chat.withhold(&HashSet::from(["mcp__a__b".to_owned()]));
        chat.keep(|_| true);
        assert_eq!(chat.own, [serde_json::from_str::<Value>(NAMESPACE).expect("JSON")]);
    }

    #[test]
    fn tools_are_read_where_messages_are_not() {
        let text = request(TOOL, "").replace(r#""messages" : ["#, r#""messages" : [ 7,"#);
        let read = deferred(Api::Anthropic, &text, &config(StrategyConfig::Auto));
        let names: Vec<String> = read.expect("tools").into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["mcp__git__log"], "they are few, and there is a strange message");
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
        let few = Chat::read(Api::Anthropic, "", request(TOOL, ""), &config(StrategyConfig::Auto));
        assert_eq!(few.map(|_| ()), Err("few-tools"));
    }

    const NAMESPACE: &str = r#"{"type":"namespace","name":"mcp__git","tools":[ {"type":"function","name":"log","parameters":{ "x":1.0 }} ]}"#;
    const MODEL: &str = "/v1beta/models/gemini-3-pro:generateContent";

    fn read_by(api: Api, text: &str) -> Result<Chat, PassReason> {
        Chat::read(api, MODEL, text.to_owned(), &config(StrategyConfig::Envelope))
    }

    #[test]
    fn only_tools_and_items_of_responses_are_edited() {
        let text = format!(
            r#"{{"x":1.0, "input":[ {{"role":"user","content":"h\u00e9"}}, {{"type":"reasoning","id":"r"}},{{"type":"reasoning","id":"s"}},{{ "type":"function_call","call_id":"c","namespace":"mcp__git","name":"log","arguments":"{{ }}"}}],"model":"m", "tools":[{{"type":"local_shell"}},{NAMESPACE}] }}"#
        );
        let mut chat = read_by(Api::OpenAiResponses, &text).expect("a chat");
        assert_eq!((chat.own.len(), chat.deferred.len(), chat.is_kept), (1, 1, true));
        chat.keep(|_| false);
        assert_eq!(chat.messages[2]["name"], "mcp__git__log");
        let tools = [chat.own[0].clone(), json!({ "name": "x" })];
        let mut messages = chat.messages.clone();
        messages[2]["name"] = "y".into();
        let edited = chat.with(&tools, &messages, &[]);
        let expected = r#"{"x":1.0, "input":[{"role":"user","content":"h\u00e9"},{"type":"reasoning","id":"s"},{"type":"function_call","call_id":"c","name":"y","arguments":"{ }"}],"model":"m", "tools":[{"type":"local_shell"},{"name":"x"}] }"#;
        assert_eq!(edited, expected);
    }

    #[test]
    fn the_second_tool_of_a_name_stays() {
        let same = r#"{"type":"function","name":"mcp__git__log","parameters":{}}"#;
        let text = format!(r#"{{"model":"m","tools":[{NAMESPACE},{same}],"input":"x"}}"#);
        let chat = read_by(Api::OpenAiResponses, &text).expect("a chat");
        assert_eq!((chat.own.len(), chat.deferred.len()), (1, 1));
    }

    #[test]
    fn a_text_is_a_message_of_the_users() {
        let text =
            format!(r#"{{"model":"m","store":false,"tools":[{NAMESPACE}],"input":"h\u00e9"}}"#);
        let chat = read_by(Api::OpenAiResponses, &text).expect("a chat");
        assert_eq!((intent(&chat.messages).as_deref(), chat.is_kept), (Some("hé"), false));
        let edited = chat.with(&[], &chat.messages, &[]);
        assert_eq!(
            edited,
            r#"{"model":"m","store":false,"tools":[],"input":[{"role":"user","content":"h\u00e9"}]}"#
        );
    }

    #[test]
    fn only_functions_and_contents_of_gemini_are_edited() {
        let text = r#"{"contents":[ {"parts":[{"text":"h\u00e9"}]} ], "tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"own", "x":1.0},{"name":"mcp_a_b"}]}],"generationConfig":{"temperature":1.0}}"#;
        let chat = read_by(Api::Gemini, text).expect("a chat");
        assert_eq!((chat.model.as_str(), chat.deferred.len()), ("gemini-3-pro", 1));
        assert_eq!(intent(&chat.messages).as_deref(), Some("hé"));
        let mut tools = chat.own.clone();
        tools.push(json!({ "name": "x" }));
        let edited = chat.with(&tools, &chat.messages, &[]);
        let expected = r#"{"contents":[{"parts":[{"text":"h\u00e9"}]}], "tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"own", "x":1.0},{"name":"x"}]}],"generationConfig":{"temperature":1.0}}"#;
        assert_eq!(edited, expected);
    }

    #[test]
    fn what_is_in_doubt_in_the_newer_apis_is_sent_as_it_came() {
        let responses = |tools: &str, input: &str, more: &str| {
            format!(r#"{{"model":"m","tools":[{tools}],"input":{input}{more}}}"#)
        };
        let deferring = r#"[{"type":"additional_tools","tools":[]}]"#;
        let inner = r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"a","parameters":{},"defer_loading":true}]}"#;
        for (text, reason) in [
            (responses(NAMESPACE, "7", ""), "shape"),
            (responses(NAMESPACE, r#""x""#, r#","conversation":"c""#), "unknown-history"),
            (responses(NAMESPACE, r#""x""#, r#","background":true"#), "background"),
            (responses(NAMESPACE, deferring, ""), "host-defers"),
            (responses(&format!("{NAMESPACE},{inner}"), r#""x""#, ""), "host-defers"),
            (
                responses(
                    NAMESPACE,
                    r#""x""#,
                    r#","tool_choice":{"type":"function","name":"log"}"#,
                ),
                "nothing-to-defer",
            ),
            (
                responses(
                    NAMESPACE,
                    r#""x""#,
                    r#","tool_choice":{"type":"allowed_tools","tools":[{"name":"log"}]}"#,
                ),
                "nothing-to-defer",
            ),
        ] {
            assert_eq!(read_by(Api::OpenAiResponses, &text).map(|_| ()), Err(reason), "{text}");
        }
        let gemini = |more: &str| {
            format!(
                r#"{{"contents":[],"tools":[{{"functionDeclarations":[{{"name":"mcp_a_b"}}]}}]{more}}}"#
            )
        };
        for (more, reason) in [
            (r#","cachedContent":"c""#, "unknown-history"),
            (r#","generationConfig":{"candidateCount":2}"#, "several-choices"),
            (
                r#","toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}"#,
                "partial-arguments",
            ),
            (
                r#","toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["mcp_a_b"]}}"#,
                "nothing-to-defer",
            ),
        ] {
            assert_eq!(read_by(Api::Gemini, &gemini(more)).map(|_| ()), Err(reason), "{more}");
        }
        let nameless = Chat::read(Api::Gemini, "/x", gemini(""), &config(StrategyConfig::Envelope));
        assert_eq!(nameless.map(|_| ()), Err("shape"));
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
                { "type": "text", "text": "<session_context>\nx" },
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
