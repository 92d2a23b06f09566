//! Choice of a strategy: what the endpoint takes, and what costs least.

use serde_json::Value;

use super::{Api, Endpoint, Offer, Reason, Strategy, Turn, Way, keep, messages, plan, toolset};
use crate::price::{Following, Rates};
use crate::render::{RenderError, Tool};

/// Models that don't take tools amid a conversation, as patterns of whole names with `*` for any characters. All other
/// models are assumed to take them.
pub const DENIED_MODELS: [&str; 26] = [
    // Anthropic: those before Opus 4.8, and the small ones.
    "*claude-2*",
    "*claude-3*",
    "*claude-instant*",
    "*haiku*",
    "*sonnet-4*",
    "*claude-sonnet-5",
    "*claude-sonnet-5-2*",
    "*opus-4",
    "*opus-4-2*",
    "*opus-4-0*",
    "*opus-4-1*",
    "*opus-4-5*",
    "*opus-4-6*",
    "*opus-4-7*",
    // OpenAI: those before GPT-5.4.
    "gpt-3*",
    "gpt-4*",
    "chatgpt-*",
    "o1*",
    "o3*",
    "o4*",
    "gpt-5",
    "gpt-5-*",
    "gpt-5.1*",
    "gpt-5.2*",
    "gpt-5.3*",
    "codex-*",
];

/// Factor by which [`Strategy::Native`] may be dearer than [`Strategy::Envelope`] and is still taken: the provider holds the model
/// to the schemas of its own definitions. Later requests are a guess, whose error adds to it.
const WORTH_NATIVE: f64 = 1.01;

/// Tokens of definitions that a following request is expected to add, as a share of the active set's, where the other
/// choice is to send the whole catalog.
const NEW: f64 = 0.2;

/// The same where the other choice is [`Strategy::Cut`]. What is added makes a request long enough for the cache sooner. Of
/// 0, .1 and .2, this was chosen on `tests/data/conversations/dev.jsonl`.
const NEW_BESIDE_CUT: f64 = 0.1;

/// Hosts of the providers' own APIs. Hosts below them, as for a region, are the provider's too.
const OWN_HOSTS: [(Api, &str); 2] =
    [(Api::Anthropic, "api.anthropic.com"), (Api::OpenAiResponses, "api.openai.com")];

/// Returns true if tools may be deferred in requests with these tools of the agent's own. It can be asked before
/// anything is known about the catalog, and errs towards yes; [`prepare`](super::prepare) decides.
#[must_use]
pub fn may_defer(own: &[Value]) -> bool {
    !own.iter().any(is_deferring)
}

/// Strategy, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub strategy: Strategy,
    pub reason: Reason,
}

/// Chooses the strategy of a turn. Where something is in doubt, more tools are sent.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub(super) fn choose(turn: &Turn<'_>) -> Result<Choice, RenderError> {
    match settled(turn) {
        Some(choice) => Ok(choice),
        None => cheapest(turn),
    }
}

/// Returns the strategy of a turn for which the price does not matter.
fn settled(turn: &Turn<'_>) -> Option<Choice> {
    let because = |strategy, reason| Some(Choice { strategy, reason });
    let offer = &turn.offer;
    if offer.deferred > 0 && !offer.search {
        return because(Strategy::Pass, Reason::NoSearch);
    }
    match turn.strategy {
        Some(Strategy::Native) if !has_additions(turn.api) || is_denied(&turn.endpoint) => {
            because(Strategy::Envelope, Reason::NotTaken)
        }
        Some(asked) => because(asked, Reason::Asked),
        None if offer.deferred == 0 => because(Strategy::Pass, Reason::NothingDeferred),
        None if !may_defer(offer.own) => because(Strategy::Pass, Reason::HostDefers),
        None => None,
    }
}

/// Returns the cheapest strategy, [`Strategy::Pass`] with the whole catalog among them. Additions keep the cached prefix, so that a
/// conversation which has them never changes again. Where the provider caches nothing of so short a request, there is
/// no prefix to keep, and [`Strategy::Cut`] may have fewer tokens.
fn cheapest(turn: &Turn<'_>) -> Result<Choice, RenderError> {
    let kept = |strategy| Ok(Choice { strategy, reason: Reason::Kept });
    let takes_native = takes_additions(turn.api, &turn.endpoint);
    let earlier = turn.ledger.way.filter(|way| way.api == turn.api).map(|way| way.strategy);
    match earlier {
        Some(Strategy::Envelope) => return kept(Strategy::Envelope),
        Some(Strategy::Native) if takes_native => return kept(Strategy::Native),
        _ => {}
    }
    let adding = if takes_native { cheaper_addition(turn)? } else { Strategy::Envelope };
    let is_sent_whole = earlier == Some(Strategy::Pass);
    let strategy = if is_whole(turn, adding, is_sent_whole)? {
        Strategy::Pass
    } else if is_cut(turn, adding)? {
        Strategy::Cut
    } else {
        adding
    };
    let reason = if earlier == Some(strategy) { Reason::Kept } else { Reason::Cheapest };
    Ok(Choice { strategy, reason })
}

/// Returns [`Strategy::Native`], or [`Strategy::Envelope`] where that costs less by more than [`WORTH_NATIVE`]. What
/// following requests add is counted as each of the two writes it: the first definitions may stand in `tools`, where both
/// write them alike. The least length of a cached prompt and the cache's steps are left out: which of the two reaches
/// them first depends on what only the agent knows, such as the system prompt, and a strategy is not to be chosen because
/// its requests are longer.
fn cheaper_addition(turn: &Turn<'_>) -> Result<Strategy, RenderError> {
    let rates = Rates { least: 1, step: 1, ..Rates::of(turn.api, &turn.endpoint) };
    let prices = prices(turn, rates, NEW_BESIDE_CUT)?;
    let price = |strategy| -> Result<f64, RenderError> {
        let added = plan::added(turn, Way { api: turn.api, strategy })?;
        let new = share_of(messages::tokens(turn.count, &added), NEW_BESIDE_CUT);
        Ok(Prices { new, ..prices }.of_adding(tokens(turn, strategy)?))
    };
    let is_worth_it = price(Strategy::Native)? <= price(Strategy::Envelope)? * WORTH_NATIVE;
    Ok(if is_worth_it { Strategy::Native } else { Strategy::Envelope })
}

/// Returns true if the request is so short that nothing of it is cached, and [`Strategy::Cut`] costs no more than adding.
fn is_cut(turn: &Turn<'_>, adding: Strategy) -> Result<bool, RenderError> {
    let rates = Rates::of(turn.api, &turn.endpoint);
    let cut = with_system(turn, tokens(turn, Strategy::Cut)?);
    if cut >= rates.least {
        return Ok(false);
    }
    let added = with_system(turn, tokens(turn, adding)?);
    let prices = prices(turn, rates, NEW_BESIDE_CUT)?;
    Ok(prices.of_cutting(cut, added) <= prices.of_adding(added))
}

/// Returns the prices of the next requests, each of which adds this share of the active set's definitions.
fn prices(turn: &Turn<'_>, rates: Rates, share: f64) -> Result<Prices, RenderError> {
    let active = toolset::render(turn.api, turn.offer.active)?.tools;
    let active = messages::tokens(turn.count, &active);
    Ok(Prices {
        rates,
        following: keep::following(turn),
        new: share_of(active, share),
        left: turn.offer.catalog_tokens.unwrap_or(u32::MAX).saturating_sub(active),
    })
}

/// Returns this share of tokens.
fn share_of(tokens: u32, share: f64) -> u32 {
    (f64::from(tokens) * share) as u32
}

/// Returns true if the whole catalog costs less than the cheapest request that defers tools, with the requests that are expected to
/// follow. `is_sent` tells that the cache holds it already. A conversation that began with less changes to the whole
/// catalog only at a message of the user: amid a turn its next request may be the last one, so that nothing would be read
/// of what was written, and to wait costs no more than what the turn's own requests would have read.
fn is_whole(turn: &Turn<'_>, adding: Strategy, is_sent: bool) -> Result<bool, RenderError> {
    let Some(counted) = turn.offer.catalog_tokens else { return Ok(false) };
    let has_begun = turn.ledger.way.is_some_and(|way| way.api == turn.api);
    if has_begun && !is_sent && !messages::is_at_user(turn.api, turn.messages) {
        return Ok(false);
    }
    let others = messages::tokens(turn.count, turn.offer.own.iter().chain(turn.messages));
    let others = with_system(turn, others);
    let rates = Rates { step: 1, ..Rates::of(turn.api, &turn.endpoint) };
    let prices = prices(turn, rates, NEW)?;
    let added = with_system(turn, tokens(turn, adding)?);
    let cut = with_system(turn, tokens(turn, Strategy::Cut)?);
    let shortest = added.min(cut);
    let deferring = prices.of_adding(added).min(prices.of_adding(cut));
    let is_cheapest = |definitions: u32| {
        let whole = definitions.saturating_add(others);
        // What is too short for the cache gains nothing for later requests. A longer request can wait until it is not.
        let gains = is_sent || whole >= rates.least || whole <= shortest;
        gains && prices.of_whole(whole, is_sent) < deferring
    };
    // The catalog was counted once for all APIs. One that seems long enough for the cache may be too short in the API's
    // format. What was sent whole before was long enough, and its definitions need not be rendered once more.
    Ok(is_cheapest(counted) && (is_sent || rendered_tokens(turn).is_none_or(is_cheapest)))
}

/// Returns the tokens of all definitions in the API's format, without the agent's own. It is `None` if one of them can't be rendered, or
/// if the turn may use a part of the catalog alone, whose names are not known. The whole catalog is rendered for it.
fn rendered_tokens(turn: &Turn<'_>) -> Option<u32> {
    let Offer { always_on, active, deferred, deferred_names, find, .. } = &turn.offer;
    if deferred + active.len() != deferred_names.len() {
        return None;
    }
    let deferrable = deferred_names.iter().map(|name| find(name));
    let all = always_on.iter().copied().map(Some).chain(deferrable);
    let tools: Vec<Tool<'_>> = all.collect::<Option<_>>()?;
    let rendered = toolset::render(turn.api, &tools).ok()?;
    Some(messages::tokens(turn.count, &rendered.tools))
}

/// Prices of a conversation's next requests.
#[derive(Clone, Copy)]
struct Prices {
    rates: Rates,
    following: Following,
    /// Tokens of definitions that a following request adds.
    new: u32,
    /// Tokens of definitions that can be added in all.
    left: u32,
}

impl Prices {
    /// Returns the price of requests of which the first has `tokens` tokens and each further one adds definitions.
    fn of_adding(&self, tokens: u32) -> f64 {
        let length = |number: u32| {
            let new = number.saturating_mul(self.new).min(self.left);
            tokens.saturating_add(new).saturating_add(number.saturating_mul(self.following.growth))
        };
        self.price(0, length)
    }

    /// Returns the price of requests that cut until they are long enough for the cache, and add from then on. The first
    /// has `cut` tokens, or `added` if it adds.
    fn of_cutting(&self, cut: u32, added: u32) -> f64 {
        let mut price = 0.0;
        for number in 0..=self.following.requests {
            let grown = number.saturating_mul(self.following.growth);
            let tokens = cut.saturating_add(grown);
            if tokens >= self.rates.least {
                let requests = self.following.requests - number;
                let left = Self { following: Following { requests, ..self.following }, ..*self };
                return price + left.of_adding(added.saturating_add(grown));
            }
            price += f64::from(tokens);
        }
        price
    }

    /// Returns the price of requests of which the first has `tokens` tokens, all definitions among them.
    fn of_whole(&self, tokens: u32, is_sent: bool) -> f64 {
        let length =
            |number: u32| tokens.saturating_add(number.saturating_mul(self.following.growth));
        self.price(if is_sent { tokens } else { 0 }, length)
    }

    fn price(&self, cached: u32, length: impl Fn(u32) -> u32) -> f64 {
        let mut before = cached;
        let mut price = 0.0;
        for number in 0..=self.following.requests {
            let tokens = length(number);
            price += self.rates.price_of(tokens, before);
            before = tokens;
        }
        price
    }
}

/// Returns the tokens of a request with the system prompt, which the cache holds as well.
fn with_system(turn: &Turn<'_>, tokens: u32) -> u32 {
    tokens.saturating_add(turn.system_tokens)
}

/// Returns the tokens of the request that a strategy makes, without the system prompt.
fn tokens(turn: &Turn<'_>, strategy: Strategy) -> Result<u32, RenderError> {
    let prepared = super::prepare_by(turn, Choice { strategy, reason: Reason::Cheapest })?;
    Ok(messages::tokens(turn.count, prepared.tools.iter().chain(&prepared.messages)))
}

/// Returns true if the API has tools amid a conversation.
fn has_additions(api: Api) -> bool {
    OWN_HOSTS.iter().any(|(known, _)| *known == api)
}

/// Returns true if a tool defers others by itself, or is deferred by the host.
fn is_deferring(tool: &Value) -> bool {
    tool["defer_loading"] == true || is_search(tool)
}

/// Returns true for the tool search of a provider's own.
pub(super) fn is_search(tool: &Value) -> bool {
    tool["type"].as_str().is_some_and(|kind| kind.starts_with("tool_search"))
}

/// Returns true if tools can be sent amid a conversation. An endpoint behind a base URL that is not the provider's own is
/// assumed not to take them.
pub(super) fn takes_additions(api: Api, endpoint: &Endpoint<'_>) -> bool {
    let own = |known: Api, host: &str| {
        known == api && (endpoint.base_url.is_empty() || is_at(endpoint.base_url, host))
    };
    let is_own = OWN_HOSTS.iter().any(|(known, host)| own(*known, host));
    is_own && !endpoint.without_native && !is_denied(endpoint)
}

/// Returns true if a model is on the deny list.
fn is_denied(endpoint: &Endpoint<'_>) -> bool {
    let model = endpoint.model.to_lowercase();
    let denied = endpoint.denied.unwrap_or(&DENIED_MODELS);
    denied.iter().any(|pattern| is_like(&model, &pattern.to_lowercase()))
}

/// Returns true if a URL's host is `host` or one below it.
fn is_at(url: &str, host: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let named = authority.rsplit('@').next().unwrap_or_default();
    let named = named.split(':').next().unwrap_or_default().to_ascii_lowercase();
    named == host || named.strip_suffix(host).is_some_and(|above| above.ends_with('.'))
}

/// Returns true if a text is like a pattern in which `*` stands for any characters.
#[must_use]
pub fn is_like(text: &str, pattern: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Ledger, Listing};
    use super::*;

    fn takes(api: Api, model: &str, base_url: &str) -> bool {
        takes_additions(api, &Endpoint { model, base_url, ..Endpoint::default() })
    }

    #[test]
    fn models_are_denied_by_pattern_and_unknown_ones_are_not() {
        for model in ["claude-opus-4-8", "claude-opus-5-5", "claude-sonnet-5-5", "claude-next", ""]
        {
            assert!(takes(Api::Anthropic, model, ""), "{model}");
        }
        for model in ["claude-haiku-4-5", "Claude-Sonnet-4-6", "claude-opus-4-1-20250805"] {
            assert!(!takes(Api::Anthropic, model, ""), "{model}");
        }
        for model in ["gpt-5.4", "gpt-5.5-mini", "gpt-6.1", "o9"] {
            assert!(takes(Api::OpenAiResponses, model, ""), "{model}");
        }
        for model in ["gpt-5", "gpt-5-mini", "gpt-5.2", "gpt-4o", "o3-mini"] {
            assert!(!takes(Api::OpenAiResponses, model, ""), "{model}");
        }
        let denied =
            Endpoint { model: "gpt-9-x", denied: Some(&["gpt-9*"]), ..Endpoint::default() };
        assert!(!takes_additions(Api::OpenAiResponses, &denied));
        let library = Endpoint { without_native: true, ..Endpoint::default() };
        assert!(!takes_additions(Api::OpenAiResponses, &library));
        assert!(!takes(Api::OpenAiChat, "gpt-6.1", ""));
        assert!(!takes(Api::Gemini, "gemini-4", ""));
    }

    #[test]
    fn only_the_providers_own_host_is_assumed_to_take_additions() {
        for url in ["https://api.openai.com/v1", "https://eu.api.openai.com:443/v1"] {
            assert!(takes(Api::OpenAiResponses, "gpt-6.1", url), "{url}");
        }
        for url in [
            "https://api.openai.com.evil.example/v1",
            "https://notapi.openai.com/v1",
            "https://api.openai.com@evil.example/v1",
            "http://127.0.0.1:4000",
            "https://api.anthropic.com",
        ] {
            assert!(!takes(Api::OpenAiResponses, "gpt-6.1", url), "{url}");
        }
    }

    /// Returns Gemini's strategy for a message of so many tokens.
    fn chosen(tokens: u32) -> Strategy {
        chosen_behind(0, tokens)
    }

    /// Returns Gemini's strategy for a system prompt and a message of so many tokens.
    fn chosen_behind(system_tokens: u32, tokens: u32) -> Strategy {
        let message = json!({ "role": "user", "parts": [{ "text": "[long]" }] });
        let count = |text: &str| if text.contains("[long]") { tokens } else { 10 };
        let turn = Turn {
            api: Api::Gemini,
            strategy: None,
            endpoint: Endpoint::default(),
            offer: offer_of(&[]),
            system_tokens,
            messages: &[message],
            ledger: &Ledger::default(),
            count: &count,
        };
        choose(&turn).expect("the tools have their schemas").strategy
    }

    fn offer_of<'a>(active: &'a [Tool<'a>]) -> Offer<'a> {
        Offer {
            own: &[],
            always_on: &[],
            active,
            deferred: 1,
            catalog_tokens: None,
            search: true,
            deferred_names: &["a"],
            listing: Listing::default(),
            budget: None,
            find: &|_| None,
        }
    }

    fn chosen_of(
        api: Api,
        messages: &[Value],
        active: &[Tool<'_>],
        count: &dyn Fn(&str) -> u32,
    ) -> Strategy {
        let turn = Turn {
            api,
            strategy: None,
            endpoint: Endpoint::default(),
            offer: offer_of(active),
            system_tokens: 0,
            messages,
            ledger: &Ledger::default(),
            count,
        };
        choose(&turn).expect("the tools have their schemas").strategy
    }

    #[test]
    fn native_is_taken_where_what_stands_around_its_definitions_hardly_counts() {
        let names: Vec<String> = (0..20).map(|number| format!("tool_{number}")).collect();
        let tools: Vec<Tool<'_>> = names
            .iter()
            .map(|name| Tool { name, input_schema_json: r#"{"type":"object"}"#, ..Tool::default() })
            .collect();
        let chosen = |history: u32| {
            let messages = [
                json!({ "role": "user", "content": "first" }),
                json!({ "role": "assistant", "content": "[long]" }),
                json!({ "role": "user", "content": "second" }),
            ];
            let count = |text: &str| {
                if text.contains("[long]") {
                    history
                } else {
                    u32::try_from(text.len() / 4).expect("a short text")
                }
            };
            chosen_of(Api::Anthropic, &messages, &tools, &count)
        };
        assert_eq!(chosen(20_000), Strategy::Envelope);
        assert_eq!(chosen(200_000), Strategy::Native);
    }

    #[test]
    fn what_later_requests_add_is_counted_as_each_way_writes_it() {
        let names: Vec<String> = (0..20).map(|number| format!("tool_{number}")).collect();
        let tools: Vec<Tool<'_>> = names
            .iter()
            .map(|name| Tool { name, input_schema_json: r#"{"type":"object"}"#, ..Tool::default() })
            .collect();
        let turn = Turn {
            api: Api::Anthropic,
            strategy: None,
            endpoint: Endpoint::default(),
            offer: offer_of(&tools),
            system_tokens: 0,
            messages: &[json!({ "role": "user", "content": "first" })],
            ledger: &Ledger::default(),
            count: &|text| u32::try_from(text.len() / 4).expect("a short text"),
        };
        let tokens = |strategy| tokens(&turn, strategy).expect("the tools have their schemas");
        // All definitions stand in `tools` in this request, where the envelope has a tool of its own besides.
        assert!(tokens(Strategy::Native) < tokens(Strategy::Envelope));
        let cheaper = cheaper_addition(&turn).expect("the tools have their schemas");
        assert_eq!(cheaper, Strategy::Envelope);
    }

    #[test]
    fn native_is_not_left_for_a_longer_envelope() {
        // What is expected of a following request is nearly a step of the cache, so that all of them fall alike.
        let description = "It says what the weather will be. ".repeat(18);
        let tool = Tool {
            name: "tool_1",
            description: &description,
            input_schema_json: r#"{"type":"object"}"#,
            ..Tool::default()
        };
        // The first lengths are around the least one that is cached, the others around the cache's steps.
        for length in (0..3_000).step_by(10) {
            let message = json!({ "role": "user", "content": "[long]" });
            let count = |text: &str| {
                let written = u32::try_from(text.len() / 4).expect("a short text");
                written + if text.contains("[long]") { length } else { 0 }
            };
            let chosen = chosen_of(Api::OpenAiResponses, &[message], &[tool], &count);
            let all = [Strategy::Native, Strategy::Cut];
            assert!(all.contains(&chosen), "{chosen:?} at {length}");
        }
    }

    #[test]
    fn shortly_below_the_cache_a_longer_request_is_cheaper() {
        assert_eq!(chosen(1_000), Strategy::Cut);
        assert_eq!(chosen(4_080), Strategy::Envelope, "only with the envelope it is cached");
        assert_eq!(chosen(5_000), Strategy::Envelope);
        assert_eq!(chosen_behind(4_000, 1_000), Strategy::Envelope, "the system prompt counts");
    }

    #[test]
    fn cutting_has_the_price_of_adding_from_where_the_cache_begins() {
        let prices = Prices {
            rates: Rates { step: 1, ..Rates::OPENAI },
            following: Following { requests: 3, growth: 100 },
            new: 20,
            left: 100,
        };
        let price = |cut| prices.of_cutting(cut, cut + 50);
        assert!((price(500) - (500.0 + 600.0 + 700.0 + 800.0)).abs() < 1e-9);
        let added = 1_150.0 + (115.0 + 120.0);
        assert!((price(900) - (900.0 + 1_000.0 + added)).abs() < 1e-9);
    }

    #[test]
    fn a_catalog_that_is_hardly_longer_is_sent_whole_and_a_long_one_is_not() {
        let prices = Prices {
            rates: Rates { step: 1, ..Rates::OPENAI },
            following: Following { requests: 2, growth: 100 },
            new: 10,
            left: 15,
        };
        let added = 2_000.0 + (200.0 + 110.0) + (211.0 + 105.0);
        assert!((prices.of_adding(2_000) - added).abs() < 1e-9);
        assert!((prices.of_whole(2_000, false) - (2_000.0 + 300.0 + 310.0)).abs() < 1e-9);
        // The cache holds it already.
        assert!((prices.of_whole(4_000, true) - (400.0 + 500.0 + 510.0)).abs() < 1e-9);
        assert!(prices.of_whole(2_010, false) < prices.of_adding(2_000));
        assert!(prices.of_whole(4_000, false) > prices.of_adding(2_000));
    }

    /// Returns Gemini's strategy where the catalog was counted as 4,200 tokens, just enough for its cache, and its one tool has so
    /// many in Gemini's format.
    fn chosen_where_the_catalog_has(tokens: u32) -> Strategy {
        chosen_where_the_catalog_is_behind(0, tokens)
    }

    /// Returns the same behind a system prompt of so many tokens.
    fn chosen_where_the_catalog_is_behind(system_tokens: u32, tokens: u32) -> Strategy {
        let tool = Tool {
            name: "tool_1",
            description: "[all]",
            input_schema_json: r#"{"type":"object"}"#,
            ..Tool::default()
        };
        let offer = Offer {
            own: &[],
            always_on: &[],
            active: &[],
            deferred: 1,
            catalog_tokens: Some(4_200),
            search: true,
            deferred_names: &["tool_1"],
            listing: Listing::default(),
            budget: None,
            find: &|_| Some(tool),
        };
        let turn = Turn {
            api: Api::Gemini,
            strategy: None,
            endpoint: Endpoint::default(),
            offer,
            system_tokens,
            messages: &[json!({ "role": "user", "parts": [{ "text": "first" }] })],
            ledger: &Ledger::default(),
            count: &|text| if text.contains("[all]") { tokens } else { 1_000 },
        };
        choose(&turn).expect("the tool has its schema").strategy
    }

    #[test]
    fn a_catalog_is_sent_whole_by_its_length_in_the_apis_format() {
        assert_eq!(chosen_where_the_catalog_has(4_200), Strategy::Pass);
        assert_eq!(
            chosen_where_the_catalog_has(2_000),
            Strategy::Cut,
            "it is too short for the cache"
        );
    }

    #[test]
    fn a_catalog_waits_until_the_cache_takes_it_unless_it_is_shorter_than_what_defers() {
        assert_eq!(chosen_where_the_catalog_has(3_090), Strategy::Cut);
        assert_eq!(chosen_where_the_catalog_has(10), Strategy::Pass);
        let behind_prompt = chosen_where_the_catalog_is_behind(1_000, 3_090);
        assert_eq!(behind_prompt, Strategy::Pass, "the prompt makes it long enough");
    }

    #[test]
    fn a_whole_catalog_begins_at_a_message_of_the_user() {
        let tool = Tool {
            name: "tool_1",
            description: "[all]",
            input_schema_json: r#"{"type":"object"}"#,
            ..Tool::default()
        };
        let chosen = |messages: &[Value], begun: Option<Strategy>| {
            let way = begun.map(|strategy| Way { api: Api::Gemini, strategy });
            let ledger = Ledger { way, ..Ledger::default() };
            let find = |_: &str| Some(tool);
            let offer = Offer {
                catalog_tokens: Some(500),
                deferred_names: &["tool_1"],
                find: &find,
                ..offer_of(&[])
            };
            let turn = Turn {
                api: Api::Gemini,
                strategy: None,
                endpoint: Endpoint::default(),
                offer,
                system_tokens: 0,
                messages,
                ledger: &ledger,
                count: &|text| if text.contains("[all]") { 500 } else { 1_500 },
            };
            choose(&turn).expect("the tool has its schema").strategy
        };
        let user = json!({ "role": "user", "parts": [{ "text": "first" }] });
        let call = json!({ "role": "model", "parts": [{ "functionCall": { "name": "tool_1" } }] });
        let answer = json!({ "role": "user", "parts": [
            { "functionResponse": { "name": "tool_1", "response": {} } }] });
        let amid = [user.clone(), call, answer];
        let next = [&amid[..], &[user]].concat();
        assert_ne!(chosen(&amid, Some(Strategy::Cut)), Strategy::Pass, "the turn may be over");
        assert_eq!(chosen(&amid, Some(Strategy::Pass)), Strategy::Pass, "all was sent before");
        assert_eq!(chosen(&next, Some(Strategy::Cut)), Strategy::Pass);
        assert_eq!(chosen(&amid, None), Strategy::Pass, "nothing was sent before");
    }

    #[test]
    fn a_hosts_own_search_or_deferral_is_seen() {
        assert!(may_defer(&[json!({ "name": "read_file" })]));
        assert!(!may_defer(&[json!({ "name": "a", "defer_loading": true })]));
        assert!(!may_defer(&[json!({ "type": "tool_search_tool_bm25_20251119", "name": "s" })]));
        assert!(!may_defer(&[json!({ "type": "tool_search" })]));
    }
}
