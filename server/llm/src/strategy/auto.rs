//! Choice of a strategy: what the endpoint takes, and what costs least.

use serde_json::Value;

use super::{Api, Endpoint, Reason, Strategy, Turn, keep, messages, toolset};
use crate::price::{Following, Rates};
use crate::render::RenderError;

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

/// Factor by which cutting must be cheaper than adding: what is cut is never carried on.
const NEARLY: f64 = 0.95;

/// Factor by which a conversation may outlast what is expected of it.
const LONGEST: f64 = 1.4;

/// Tokens of definitions that a following request is expected to add, as a share of the active set's.
const NEW: f64 = 0.2;

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

/// Returns the strategy that is cheapest, or nearly so, however long the conversation goes on: the one whose price is the
/// least above that of the cheapest at the length that suits it least. Additions keep the cached prefix, so that a conversation
/// which has them never changes again. Where the provider caches nothing of so short a request, there is no prefix to keep, and
/// [`Strategy::Cut`] may have fewer tokens. A small catalog is sooner sent whole than added bit by bit.
fn cheapest(turn: &Turn<'_>) -> Result<Choice, RenderError> {
    let takes_native = takes_additions(turn.api, &turn.endpoint);
    let earlier = turn.ledger.way.filter(|way| way.api == turn.api).map(|way| way.strategy);
    let adding = match earlier {
        Some(Strategy::Envelope) => Strategy::Envelope,
        _ if takes_native => Strategy::Native,
        _ => Strategy::Envelope,
    };
    if earlier == Some(adding) {
        return Ok(Choice { strategy: adding, reason: Reason::Kept });
    }
    let prices = Prices::of(turn, adding, earlier == Some(Strategy::Pass))?;
    let strategy = match prices.best() {
        Course::Adding => adding,
        Course::Cutting => Strategy::Cut,
        Course::Whole => Strategy::Pass,
    };
    let reason = if earlier == Some(strategy) { Reason::Kept } else { Reason::Cheapest };
    Ok(Choice { strategy, reason })
}

/// Course of a conversation's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Each adds what is new.
    Adding,
    /// Each has the active set alone, until they are long enough for the cache. From then on each adds.
    Cutting,
    /// Each has the whole catalog.
    Whole,
}

/// Lengths of a conversation's next request by each course, in tokens, and what is known of those that follow.
struct Prices {
    rates: Rates,
    added: u32,
    cut: u32,
    whole: u32,
    /// True if the cache holds the whole catalog already.
    has_whole: bool,
    following: Following,
    /// Tokens of definitions that a following request adds.
    new: u32,
    /// Tokens of definitions that can be added in all.
    left: u32,
}

impl Prices {
    fn of(turn: &Turn<'_>, adding: Strategy, has_whole: bool) -> Result<Self, RenderError> {
        let offer = &turn.offer;
        let others = offer.own.iter().chain(turn.messages);
        let whole = offer.catalog_tokens.unwrap_or(u32::MAX);
        let whole = whole.saturating_add(messages::tokens(turn.count, others));
        let cut = tokens(turn, Strategy::Cut)?;
        let active = toolset::render(turn.api, offer.active)?.tools;
        let active = messages::tokens(turn.count, &active);
        Ok(Self {
            rates: Rates { step: 1, ..Rates::of(turn.api, &turn.endpoint) },
            added: tokens(turn, adding)?,
            cut,
            whole,
            has_whole,
            following: keep::following(turn),
            new: (f64::from(active) * NEW) as u32,
            left: offer.catalog_tokens.unwrap_or(u32::MAX).saturating_sub(active),
        })
    }

    /// Returns the course whose price is the least above the cheapest, at the length of the conversation that suits it least. A
    /// conversation is expected to have two requests at least: a call, and what follows from its result.
    fn best(&self) -> Course {
        let end = f64::from(self.following.requests + 1) * LONGEST;
        let requests = end as usize;
        let courses = [Course::Adding, Course::Cutting, Course::Whole];
        let prices = courses.map(|course| self.prices(course, requests));
        let least = |number: usize| prices.iter().map(|all| all[number]).fold(f64::MAX, f64::min);
        let least: Vec<f64> = (0..requests).map(least).collect();
        let worst = |all: &[f64]| {
            let ratios =
                all.iter().zip(&least).skip(1).map(|(price, least)| price / least.max(1.0));
            ratios.fold(1.0, f64::max)
        };
        let ratios = prices.each_ref().map(|all| worst(all));
        let [adding, cutting, whole] = ratios;
        if whole < adding.min(cutting) {
            Course::Whole
        } else if self.cut < self.rates.least && cutting <= adding * NEARLY {
            Course::Cutting
        } else {
            Course::Adding
        }
    }

    /// Returns the price of the first request of a course, of the first two, and so on.
    fn prices(&self, course: Course, requests: usize) -> Vec<f64> {
        let mut prices = Vec::with_capacity(requests);
        let mut price = 0.0;
        let mut before = if course == Course::Whole && self.has_whole { self.whole } else { 0 };
        for number in 0..u32::try_from(requests).unwrap_or(u32::MAX) {
            let said = number.saturating_mul(self.following.growth);
            let new = number.saturating_mul(self.new).min(self.left);
            let cut = self.cut.saturating_add(said);
            let added = self.added.saturating_add(said).saturating_add(new);
            let tokens = match course {
                Course::Whole => self.whole.saturating_add(said),
                Course::Cutting if cut < self.rates.least => cut,
                Course::Cutting | Course::Adding => added,
            };
            price += self.rates.price_of(tokens, before);
            prices.push(price);
            // What is cut is never carried on.
            let is_cut = course == Course::Cutting && cut < self.rates.least;
            before = if is_cut { 0 } else { tokens };
        }
        prices
    }
}

/// Returns the tokens of the request that a strategy makes, without what only the agent knows, such as the system prompt.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn shortly_below_the_cache_a_longer_request_is_cheaper() {
        let best = |cut| {
            let rates = Rates::GEMINI;
            let following = Following { requests: 4, growth: 100 };
            Prices {
                rates,
                following,
                added: cut + 400,
                new: 200,
                left: 2_000,
                ..prices(cut, u32::MAX)
            }
            .best()
        };
        assert_eq!(best(1_000), Course::Cutting);
        assert_eq!(best(3_900), Course::Adding, "only with what is added it is cached");
        assert_eq!(best(5_000), Course::Adding);
    }

    fn prices(cut: u32, whole: u32) -> Prices {
        Prices {
            rates: Rates { step: 1, ..Rates::OPENAI },
            added: cut + 50,
            cut,
            whole,
            has_whole: false,
            following: Following { requests: 3, growth: 100 },
            new: 10,
            left: 25,
        }
    }

    #[track_caller]
    fn check(prices: &[f64], expected: &[f64]) {
        let differences = prices.iter().zip(expected).map(|(price, wanted)| (price - wanted).abs());
        assert!(differences.fold(0.0, f64::max) < 1e-9, "{prices:?} instead of {expected:?}");
        assert_eq!(prices.len(), expected.len());
    }

    #[test]
    fn cutting_has_the_price_of_adding_from_where_the_cache_begins() {
        check(&prices(500, 0).prices(Course::Cutting, 3), &[500.0, 1_100.0, 1_800.0]);
        // The third request would have 1,100 tokens: it adds, with what came in the meantime, and the fourth reads it.
        let third = 1_170.0;
        let fourth = 117.0 + 105.0;
        let expected = [900.0, 1_900.0, 1_900.0 + third, 1_900.0 + third + fourth];
        check(&prices(900, 0).prices(Course::Cutting, 4), &expected);
    }

    #[test]
    fn adding_ends_with_the_catalog_and_a_cached_catalog_is_read() {
        let added = prices(2_000, 0).prices(Course::Adding, 5);
        let steps: Vec<f64> = added.windows(2).map(|pair| pair[1] - pair[0]).collect();
        check(&steps, &[205.0 + 110.0, 216.0 + 110.0, 227.0 + 105.0, 237.5 + 100.0]);
        let whole = Prices { has_whole: true, ..prices(2_000, 4_000) };
        check(&whole.prices(Course::Whole, 2), &[400.0, 900.0]);
    }

    #[test]
    fn a_catalog_that_is_hardly_longer_is_sent_whole_and_a_long_one_is_not() {
        assert_eq!(prices(2_000, 2_040).best(), Course::Whole);
        assert_eq!(prices(2_000, 4_000).best(), Course::Adding);
        let added = Prices { added: 500, new: 100, left: 2_000, ..prices(200, u32::MAX) };
        assert_eq!(added.best(), Course::Cutting);
        // Another course would write the request anew, until the whole is ten times as long.
        let has_whole = |whole| Prices { has_whole: true, ..prices(2_000, whole) }.best();
        assert_eq!(has_whole(4_000), Course::Whole);
        assert_eq!(has_whole(40_000), Course::Adding);
    }

    #[test]
    fn a_hosts_own_search_or_deferral_is_seen() {
        assert!(may_defer(&[json!({ "name": "read_file" })]));
        assert!(!may_defer(&[json!({ "name": "a", "defer_loading": true })]));
        assert!(!may_defer(&[json!({ "type": "tool_search_tool_bm25_20251119", "name": "s" })]));
        assert!(!may_defer(&[json!({ "type": "tool_search" })]));
    }
}
