//! Parsing of what a request says about strategies.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::tokens;
use toolgate_llm::history::is_snapshot;
use toolgate_llm::price;
use toolgate_llm::strategy::{Api, Ledger, Listing, Strategy};
use toolgate_proto::v1::{
    PromptListing, PromptStrategy, RenderOptions, RouteOptions, RouteRequest, ToolFormat,
};

use crate::fields::{Fields, within};

/// Maximum bytes of the agent's own tools.
const OWN_TOOLS_MAX: usize = 1 << 20;

/// Maximum bytes of a ledger.
const LEDGER_MAX: usize = 64 << 10;

/// Maximum tokens of what the description of the search lists.
const LISTING_TOKENS_MAX: u32 = 32_768;

/// Request for definitions and messages by a strategy.
pub(crate) struct PromptRequest {
    /// API of the request.
    pub(super) api: Api,
    /// Strategy to use; `None` for the cheapest.
    pub(super) strategy: Option<Strategy>,
    /// True if the agent's library can't send tools amid a conversation.
    pub(super) without_native: bool,
    /// True if the operator says that the model takes no tools amid a conversation.
    pub(super) is_native_denied: bool,
    /// Tokens of the system prompt; 0 if they are not known.
    pub(super) system_tokens: u32,
    /// True if the agent answers the model's searches.
    pub(super) has_search: bool,
    /// True if the request says how many tools there may be, or of what size or rank.
    pub(super) bounds_set: bool,
    /// Most tokens of the active set's definitions, and of those of earlier turns that stay beside it.
    pub(super) active_budget: Option<u32>,
    /// Model that the request is for.
    pub(super) model: String,
    /// Base URL of its API.
    pub(super) base_url: String,
    /// Tools that the request pins.
    pub(super) pinned: Vec<String>,
    /// The agent's own tools.
    pub(super) own_tools: Listed,
    /// The agent's messages.
    pub(super) messages: Listed,
    /// Ledger of the turn before.
    pub(super) ledger: Ledger,
    /// Most tokens of what the description of the search lists; 0 for nothing.
    pub(super) listing_tokens: u32,
    /// True if it lists summaries too.
    pub(super) lists_summaries: bool,
}

impl PromptRequest {
    /// Returns what a request of Route asks for; `None` if it asks for definitions alone.
    ///
    /// # Errors
    /// [`Error::InvalidFields`] for what a strategy lacks or does not go with, and [`Error::LimitExceeded`] for messages
    /// beyond the limit.
    pub(crate) fn from_request(
        wire: &RouteRequest,
        limits: &LimitsConfig,
    ) -> Result<Option<Self>, Error> {
        let Some(render) = &wire.render else { return refuse_listing(wire).map(|()| None) };
        let strategy = match PromptStrategy::try_from(render.strategy) {
            Ok(PromptStrategy::Unspecified) => {
                refuse_listing(wire)?;
                return refuse_parts(render).map(|()| None);
            }
            Ok(PromptStrategy::Auto) => None,
            Ok(PromptStrategy::Pass) => Some(Strategy::Pass),
            Ok(PromptStrategy::Native) => Some(Strategy::Native),
            Ok(PromptStrategy::Envelope) => Some(Strategy::Envelope),
            Ok(PromptStrategy::Cut) => Some(Strategy::Cut),
            Err(_) => {
                let problem = "must be a value of PromptStrategy";
                return Err(Error::field("render.strategy", problem));
            }
        };
        let mut fields = Fields::default();
        let api = api(render, &mut fields);
        refuse_others(wire, render, &mut fields);
        let own_tools = own_tools(&render.own_tools_json, &mut fields);
        let ledger = ledger(&render.ledger, &mut fields);
        let messages = messages(wire, limits, &mut fields)?;
        let listing_tokens = listing_tokens(wire, &mut fields);
        fields.finish()?;
        let options = wire.options.as_ref();
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        Ok(Some(Self {
            api,
            strategy,
            without_native: render.without_native,
            is_native_denied: false,
            system_tokens: 0,
            has_search: render.search_tool,
            bounds_set: options.is_some_and(bounds_set),
            active_budget: options.and_then(|options| options.active_token_budget),
            model: text(options.map(|options| &options.model)),
            base_url: text(options.map(|options| &options.model_base_url)),
            pinned: options.map_or_else(Vec::new, |options| options.pinned_tools.clone()),
            own_tools,
            messages,
            ledger,
            listing_tokens,
            lists_summaries: wire.prompt_listing() == PromptListing::Summaries,
        }))
    }

    /// Refuses strategies where tools are looked up: they are for Route.
    pub(crate) fn refuse(render: Option<&RenderOptions>) -> Result<(), Error> {
        let Some(render) = render else { return Ok(()) };
        if render.strategy != i32::from(PromptStrategy::Unspecified) {
            let problem = "must be absent: only Route puts requests together";
            return Err(Error::field("render.strategy", problem));
        }
        refuse_parts(render)
    }
}

/// Refuses what is of no use without a strategy.
fn refuse_parts(render: &RenderOptions) -> Result<(), Error> {
    let mut fields = Fields::default();
    let parts = [
        (render.own_tools_json.is_empty(), "render.own_tools_json"),
        (render.ledger.is_empty(), "render.ledger"),
        (!render.without_native, "render.without_native"),
    ];
    for (is_absent, field) in parts {
        fields.require(is_absent, field, "must be absent without render.strategy");
    }
    fields.finish()
}

/// Refuses the size of a listing where the request puts none together.
fn refuse_listing(wire: &RouteRequest) -> Result<(), Error> {
    if wire.prompt_listing_tokens.is_none() {
        return Ok(());
    }
    Err(Error::field("prompt_listing_tokens", "must be absent without render.strategy"))
}

/// Returns the most tokens of what the description of the search lists; 0 for nothing.
fn listing_tokens(wire: &RouteRequest, fields: &mut Fields) -> u32 {
    let field = "prompt_listing_tokens";
    let asked = wire.prompt_listing_tokens;
    let right = asked.is_none_or(|tokens| (1..=LISTING_TOKENS_MAX).contains(&tokens));
    let problem = "must be 1 to 32,768 tokens; PROMPT_LISTING_NONE lists nothing";
    fields.require(right, field, problem);
    if wire.prompt_listing() == PromptListing::None {
        fields.require(asked.is_none(), field, "must be absent beside PROMPT_LISTING_NONE");
        return 0;
    }
    asked.unwrap_or(Listing::TOKENS)
}

/// Returns the tokens of messages or definitions.
pub(super) fn tokens_of<'a>(values: impl IntoIterator<Item = &'a Value>) -> u64 {
    values.into_iter().map(|value| u64::from(tokens::count(&price::as_read(value)))).sum()
}

fn bounds_set(options: &RouteOptions) -> bool {
    let sizes = [
        options.top_k,
        options.schema_token_budget,
        options.active_token_budget,
        options.active_set_limit,
    ];
    sizes.iter().any(Option::is_some) || options.threshold.is_some() || options.selection_rule != 0
}

fn api(render: &RenderOptions, fields: &mut Fields) -> Api {
    match ToolFormat::try_from(render.format).unwrap_or_default() {
        ToolFormat::OpenaiChat => Api::OpenAiChat,
        ToolFormat::OpenaiResponses => Api::OpenAiResponses,
        ToolFormat::Gemini => Api::Gemini,
        ToolFormat::Anthropic => Api::Anthropic,
        // An unspecified format is refused where the format is read.
        ToolFormat::Mcp | ToolFormat::Unspecified => {
            let problem = "must be absent with TOOL_FORMAT_MCP: strategies are for models' APIs";
            fields.require(false, "render.strategy", problem);
            Api::Anthropic
        }
    }
}

/// Refuses options that a strategy does not go with.
fn refuse_others(wire: &RouteRequest, render: &RenderOptions, fields: &mut Fields) {
    let problem =
        "must be absent beside render.strategy, which decides what is deferred and cached";
    fields.require(render.anthropic.is_none(), "render.anthropic", problem);
    let tail = wire.options.as_ref().map_or(0, |options| options.signature_tail);
    let problem = "must be 0 beside render.strategy, which needs full definitions";
    fields.require(tail == 0, "options.signature_tail", problem);
    let is_native = render.strategy == i32::from(PromptStrategy::Native);
    let problem = "must be absent beside PROMPT_STRATEGY_NATIVE";
    fields.require(!(render.without_native && is_native), "render.without_native", problem);
}

fn own_tools(json: &str, fields: &mut Fields) -> Listed {
    let field = "render.own_tools_json";
    fields.require(json.len() <= OWN_TOOLS_MAX, field, "must be at most 1 MiB");
    if json.is_empty() || json.len() > OWN_TOOLS_MAX {
        return Listed::default();
    }
    match Listed::read(json) {
        Ok(tools) => {
            let are_objects = tools.values.iter().all(Value::is_object);
            fields.require(are_objects, field, "must hold definitions, which are objects");
            tools
        }
        Err(error) => {
            let problem = format!("must be a JSON list of definitions: {error}");
            fields.require(false, field, &problem);
            Listed::default()
        }
    }
}

fn ledger(json: &str, fields: &mut Fields) -> Ledger {
    let field = "render.ledger";
    fields.require(json.len() <= LEDGER_MAX, field, "must be at most 64 KiB");
    if json.is_empty() || json.len() > LEDGER_MAX {
        return Ledger::default();
    }
    match serde_json::from_str::<Value>(json) {
        Ok(value) => Ledger::from_json(&value),
        Err(_) => {
            let problem = "must be the ledger of the answer before, as it came, or absent";
            fields.require(false, field, problem);
            Ledger::default()
        }
    }
}

fn messages(
    wire: &RouteRequest,
    limits: &LimitsConfig,
    fields: &mut Fields,
) -> Result<Listed, Error> {
    let field = "state.messages_json";
    let json = wire.state.as_ref().map_or("", |state| state.messages_json.as_str());
    within("limits.max_messages_size", limits.max_messages_bytes, json.len())?;
    if json.is_empty() {
        fields.require(false, field, "is missing: render.strategy puts tools into the messages");
        return Ok(Listed::default());
    }
    let read = Listed::read(json).unwrap_or_else(|error| {
        fields.require(false, field, &format!("must be a JSON list of messages: {error}"));
        Listed::default()
    });
    Ok(read.without_snapshots())
}

/// Elements of a JSON list, with their texts as they were sent.
#[derive(Debug, Default)]
pub(super) struct Listed {
    values: Vec<Value>,
    texts: Vec<Box<RawValue>>,
}

impl Listed {
    fn read(json: &str) -> Result<Self, serde_json::Error> {
        let texts: Vec<Box<RawValue>> = serde_json::from_str(json)?;
        let values = texts.iter().map(|text| serde_json::from_str(text.get()));
        Ok(Self { values: values.collect::<Result<_, _>>()?, texts })
    }

    /// Removes snapshots of the conversation, which no provider takes.
    fn without_snapshots(self) -> Self {
        let elements = self.values.into_iter().zip(self.texts);
        let (values, texts) = elements.filter(|(value, _)| !is_snapshot(value)).unzip();
        Self { values, texts }
    }

    /// Returns the elements.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the size of all elements in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.get().len()).sum()
    }

    /// Returns the elements of `values` that were not sent.
    pub(super) fn without<'v>(&self, values: &'v [Value]) -> Vec<&'v Value> {
        self.matched(values)
            .into_iter()
            .filter(|one| one.sent.is_none())
            .map(|one| one.value)
            .collect()
    }

    /// Returns by how many tokens `values` has more than the elements.
    pub(super) fn tokens_beside(&self, values: &[Value]) -> u64 {
        let kept: HashSet<usize> =
            self.matched(values).into_iter().filter_map(|one| one.sent).collect();
        let elements = self.values.iter().enumerate();
        let changed = elements.filter(|(place, _)| !kept.contains(place)).map(|(_, value)| value);
        tokens_of(self.without(values)).saturating_sub(tokens_of(changed))
    }

    /// Returns the values, each with the place of the element that it is. Elements are taken in their order.
    fn matched<'v>(&self, values: &'v [Value]) -> Vec<Matched<'v>> {
        let mut next = 0;
        let matched = |value| {
            let ahead = self.values.iter().skip(next).position(|sent| sent == value);
            let sent = ahead.map(|ahead| next + ahead);
            next = sent.map_or(next, |sent| sent + 1);
            Matched { value, sent }
        };
        values.iter().map(matched).collect()
    }

    /// Returns the list of `values` as JSON. Elements that were sent, and come in the same order, keep their bytes: numbers
    /// and escapes that a parser would write in another way are part of the cached prefix.
    pub(super) fn texts_of(&self, values: &[Value]) -> String {
        let mut json = String::from("[");
        for (place, Matched { value, sent }) in self.matched(values).into_iter().enumerate() {
            if place > 0 {
                json.push(',');
            }
            match sent.and_then(|place| self.texts.get(place)) {
                Some(text) => json.push_str(text.get()),
                None => json.push_str(&value.to_string()),
            }
        }
        json.push(']');
        json
    }
}

/// Value of a request, with the place of the element that it is; `None` if it was not sent.
struct Matched<'v> {
    value: &'v Value,
    sent: Option<usize>,
}

#[cfg(test)]
mod tests {
    use toolgate_llm::price::{PromptPrices, Rates};
    use toolgate_proto::v1::{AgentState, AnthropicRenderOptions, RouteOptions};

    use super::*;

    fn asking(render: RenderOptions) -> RouteRequest {
        let state = AgentState { messages_json: "[]".to_owned(), ..Default::default() };
        RouteRequest { render: Some(render), state: Some(state), ..Default::default() }
    }

    fn auto() -> RenderOptions {
        RenderOptions {
            format: ToolFormat::OpenaiChat.into(),
            strategy: PromptStrategy::Auto.into(),
            ..Default::default()
        }
    }

    fn read(wire: &RouteRequest) -> Result<Option<PromptRequest>, Error> {
        PromptRequest::from_request(wire, &LimitsConfig::default())
    }

    fn refused_fields(wire: &RouteRequest) -> Vec<String> {
        match read(wire) {
            Err(Error::InvalidFields(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect()
            }
            Err(other) => panic!("{other}"),
            Ok(_) => Vec::new(),
        }
    }

    #[test]
    fn a_strategy_is_read_with_its_parts() {
        assert!(read(&RouteRequest::default()).expect("no rendering").is_none());
        let definitions = RenderOptions { strategy: 0, ..auto() };
        assert!(read(&asking(definitions)).expect("definitions alone").is_none());
        let render = RenderOptions {
            own_tools_json: r#"[{"name":"own"}]"#.to_owned(),
            strategy: PromptStrategy::Native.into(),
            ..auto()
        };
        let mut wire = asking(render);
        let options =
            RouteOptions { model: "m".into(), model_base_url: "u".into(), ..Default::default() };
        wire.options = Some(options);
        let request = read(&wire).expect("valid").expect("a strategy");
        assert_eq!((request.api, request.strategy), (Api::OpenAiChat, Some(Strategy::Native)));
        assert_eq!((request.model.as_str(), request.base_url.as_str()), ("m", "u"));
        assert_eq!(request.own_tools.values().len(), 1);
        assert!(read(&asking(auto())).expect("valid").expect("a strategy").strategy.is_none());
    }

    #[test]
    fn a_set_is_weighed_by_the_prices_of_the_provider() {
        for (format, model, rates) in [
            (ToolFormat::Anthropic, "claude-opus-4-8", Rates::ANTHROPIC),
            (ToolFormat::OpenaiResponses, "gpt-5.6", Rates::OPENAI_LATER),
            (ToolFormat::OpenaiResponses, "gpt-5.5", Rates::OPENAI),
            (ToolFormat::OpenaiChat, "qwen3-coder", Rates::UNKNOWN),
            (ToolFormat::Gemini, "gemini-3.5-flash", Rates::GEMINI),
        ] {
            let mut wire = asking(RenderOptions { format: format.into(), ..auto() });
            wire.options = Some(RouteOptions { model: model.into(), ..Default::default() });
            let prices = read(&wire).expect("valid").expect("a strategy").prices();
            assert_eq!(prices, PromptPrices { rates, requests: 5 }, "{model}");
        }
    }

    #[test]
    fn a_set_is_weighed_in_a_prompt_with_the_agents_own_tools_and_the_search() {
        let beside_tokens = |search_tool, own_tools_json: &str| {
            let own_tools_json = own_tools_json.to_owned();
            let wire = asking(RenderOptions { search_tool, own_tools_json, ..auto() });
            read(&wire).expect("valid").expect("a strategy").beside_tokens()
        };
        assert_eq!(beside_tokens(false, ""), 0);
        let search = beside_tokens(true, "");
        assert!((50..500).contains(&search), "{search}");
        let own = format!(r#"[{{"name":"own","description":"{}"}}]"#, "x".repeat(32_000));
        assert!((8_000..8_100).contains(&beside_tokens(false, &own)));
        assert!((8_000 + search..8_100 + search).contains(&beside_tokens(true, &own)));
    }

    #[test]
    fn a_set_is_weighed_for_as_many_requests_as_there_were_turns() {
        let requests = |strategy: PromptStrategy, turns: usize| {
            let messages = vec![r#"{"role":"user","content":"next"}"#; turns].join(",");
            let messages_json = format!("[{messages}]");
            let mut wire = asking(RenderOptions { strategy: strategy.into(), ..auto() });
            wire.state = Some(AgentState { messages_json, ..Default::default() });
            read(&wire).expect("valid").expect("a strategy").prices().requests
        };
        let auto = [0, 5, 6, 40].map(|turns| requests(PromptStrategy::Auto, turns));
        assert_eq!(auto, [5, 5, 6, 40]);
        assert_eq!(requests(PromptStrategy::Cut, 40), 5, "the next change takes out what was kept");
    }

    #[test]
    fn without_a_search_all_is_sent() {
        for strategy in [
            PromptStrategy::Auto,
            PromptStrategy::Native,
            PromptStrategy::Envelope,
            PromptStrategy::Cut,
            PromptStrategy::Pass,
        ] {
            let render = RenderOptions { strategy: strategy.into(), search_tool: true, ..auto() };
            let searching = read(&asking(render.clone())).expect("valid").expect("a strategy");
            let is_pass = strategy == PromptStrategy::Pass;
            assert_eq!(searching.needs_everything(), is_pass, "{strategy:?}");
            let silent = RenderOptions { search_tool: false, ..render.clone() };
            let silent = read(&asking(silent)).expect("valid").expect("a strategy");
            assert!(silent.needs_everything(), "{strategy:?}: nobody answers searches");
            let own_tools_json = r#"[{"name":"a","defer_loading":true}]"#.to_owned();
            let deferring = RenderOptions { own_tools_json, ..render };
            let deferring = read(&asking(deferring)).expect("valid").expect("a strategy");
            assert!(deferring.needs_everything(), "{strategy:?}: the host defers");
        }
    }

    #[test]
    fn a_set_is_weighed_by_what_was_said() {
        let history_tokens = |strategy: PromptStrategy, messages_json: &str| {
            let mut wire = asking(RenderOptions { strategy: strategy.into(), ..auto() });
            let messages_json = messages_json.to_owned();
            wire.state = Some(AgentState { messages_json, ..Default::default() });
            read(&wire).expect("valid").expect("a strategy").history_tokens()
        };
        let [first, last] =
            [r#"{"role":"user","content":"one two three"}"#, r#"{"role":"user","content":"four"}"#];
        let both = format!("[{first},{last}]");
        assert_eq!(history_tokens(PromptStrategy::Cut, &format!("[{last}]")), Some(0));
        assert_eq!(history_tokens(PromptStrategy::Cut, &both), Some(tokens::count(first)));
        for strategy in [PromptStrategy::Auto, PromptStrategy::Native, PromptStrategy::Envelope] {
            let estimated = u32::try_from((first.len() + last.len()) / 4).expect("short texts");
            assert_eq!(history_tokens(strategy, &both), Some(estimated), "{strategy:?}");
            assert_eq!(history_tokens(strategy, "[]"), Some(1), "{strategy:?}: 0 is no history");
        }
        assert_eq!(history_tokens(PromptStrategy::Pass, &both), None);
    }

    #[test]
    fn what_does_not_go_with_a_strategy_is_named() {
        let mcp = RenderOptions { format: ToolFormat::Mcp.into(), ..auto() };
        assert_eq!(refused_fields(&asking(mcp)), ["render.strategy"]);
        let strategy = PromptStrategy::Native.into();
        let neither = RenderOptions { strategy, without_native: true, ..auto() };
        assert_eq!(refused_fields(&asking(neither)), ["render.without_native"]);
        let unknown = RenderOptions { strategy: 99, ..auto() };
        assert_eq!(refused_fields(&asking(unknown)), ["render.strategy"]);
        let anthropic = Some(AnthropicRenderOptions::default());
        let mut others = asking(RenderOptions { anthropic, ..auto() });
        others.options = Some(RouteOptions { signature_tail: 1, ..Default::default() });
        let fields = ["render.anthropic", "options.signature_tail"];
        assert_eq!(refused_fields(&others), fields);
        let silent = RouteRequest { state: None, ..asking(auto()) };
        assert_eq!(refused_fields(&silent), ["state.messages_json"]);
    }

    #[test]
    fn a_listing_has_a_size_unless_there_is_none() {
        let listed = |listing: PromptListing, tokens| RouteRequest {
            prompt_listing: listing.into(),
            prompt_listing_tokens: tokens,
            ..asking(auto())
        };
        let sizes = |listing, tokens| {
            let request = read(&listed(listing, tokens)).expect("valid").expect("a strategy");
            (request.listing_tokens, request.lists_summaries)
        };
        assert_eq!(sizes(PromptListing::Unspecified, None), (400, false));
        assert_eq!(sizes(PromptListing::Names, Some(1)), (1, false));
        assert_eq!(sizes(PromptListing::Summaries, Some(32_768)), (32_768, true));
        assert_eq!(sizes(PromptListing::None, None), (0, false));
        for (listing, tokens) in [
            (PromptListing::Names, 0),
            (PromptListing::Summaries, 32_769),
            (PromptListing::None, 100),
        ] {
            let wire = listed(listing, Some(tokens));
            assert_eq!(refused_fields(&wire), ["prompt_listing_tokens"], "{listing:?}");
        }
        for render in [None, Some(RenderOptions { strategy: 0, ..auto() })] {
            let wire = RouteRequest { render, ..listed(PromptListing::Names, Some(100)) };
            assert_eq!(refused_fields(&wire), ["prompt_listing_tokens"]);
        }
    }

    #[test]
    fn parts_without_a_strategy_are_refused() {
        let parts = RenderOptions {
            strategy: 0,
            own_tools_json: "[]".to_owned(),
            ledger: "{}".to_owned(),
            without_native: true,
            ..auto()
        };
        let fields = ["render.own_tools_json", "render.ledger", "render.without_native"];
        assert_eq!(refused_fields(&asking(parts.clone())), fields);
        assert!(PromptRequest::refuse(Some(&parts)).is_err());
        assert!(PromptRequest::refuse(Some(&auto())).is_err());
        assert!(PromptRequest::refuse(None).is_ok());
    }

    #[test]
    fn texts_that_are_no_lists_are_refused() {
        for own in ["{", "{}", "[1]", &"x".repeat(OWN_TOOLS_MAX + 1)] {
            let render = RenderOptions { own_tools_json: own.to_owned(), ..auto() };
            assert_eq!(refused_fields(&asking(render)), ["render.own_tools_json"]);
        }
        for ledger in ["what?", &" ".repeat(LEDGER_MAX + 1)] {
            let render = RenderOptions { ledger: ledger.to_owned(), ..auto() };
            assert_eq!(refused_fields(&asking(render)), ["render.ledger"]);
        }
        let mut wire = asking(auto());
        wire.state = Some(AgentState { messages_json: "{}".to_owned(), ..Default::default() });
        assert_eq!(refused_fields(&wire), ["state.messages_json"]);
        let limits = LimitsConfig { max_messages_bytes: 1, ..Default::default() };
        let long = PromptRequest::from_request(&wire, &limits);
        assert!(matches!(long, Err(Error::LimitExceeded { maximum: 1, actual: 2, .. })));
    }

    #[test]
    fn what_was_sent_keeps_its_bytes() {
        let sent =
            Listed::read(r#"[ {"n": 1.50},{"text":"\u00fc"}, {"n": 1.50} ]"#).expect("a list");
        let mut values = sent.values().to_vec();
        assert_eq!(sent.texts_of(&values), r#"[{"n": 1.50},{"text":"\u00fc"},{"n": 1.50}]"#);
        values.insert(1, serde_json::json!({ "added": true }));
        values[2] = serde_json::json!({ "text": "ü, and more" });
        let expected = r#"[{"n": 1.50},{"added":true},{"text":"ü, and more"},{"n": 1.50}]"#;
        assert_eq!(sent.texts_of(&values), expected);
        assert_eq!(sent.texts_of(&[]), "[]");
    }
}
