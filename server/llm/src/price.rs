//! Prices of prompts by the rules of providers' caches, and the decisions that follow from them. A price is a number of
//! tokens of input that is neither read from a cache nor written to one, so that it holds for any model of a provider.
//! Output is not counted: it is the same whatever the request looks like.
//!
//! A cache serves the longest prefix that a request has in common with an earlier one, in the order tools, system prompt,
//! messages. Requests are assumed to follow each other before the cache expires, and Anthropic's to mark their last block
//! (automatic caching).
//!
//! The rules and prices are those of the providers' public pages, as of November 2026:
//!
//! - Anthropic: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching> (writing 1.25 or, for an hour, 2;
//!   reading .1; the least length of each model) and <https://platform.claude.com/docs/en/about-claude/pricing>.
//! - OpenAI: <https://developers.openai.com/api/docs/guides/prompt-caching> (from 1,024 tokens on in steps of 128; writing
//!   1.25 from GPT-5.6 on) and <https://developers.openai.com/api/docs/pricing> (reading .1, for GPT-5 and later; models of
//!   before read for .25 or .5, which is not told apart here).
//! - Google: <https://ai.google.dev/gemini-api/docs/caching> (from 4,096 tokens on, Gemini 2.5 from 2,048; no hit is
//!   guaranteed) and <https://ai.google.dev/gemini-api/docs/pricing> (reading .1). Implicit caching stores for nothing.

use serde_json::Value;

use crate::strategy::{Api, Endpoint};

/// Least number of requests that a conversation is expected to have still. A conversation of unknown length is expected to
/// last as long again as it has lasted (the best guess without knowledge of its kind); in its first turns that would be
/// next to nothing, and tools would be dropped at the price of a cache that most conversations still use.
pub const LEAST_REQUESTS: u32 = 5;

/// Rules by which an API prices the tokens of a prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Price of a token that is written to the cache.
    pub write: f64,
    /// Price of a token that is read from the cache.
    pub read: f64,
    /// Least number of tokens of a prefix that is cached. A shorter prompt costs 1 a token.
    pub least: u32,
    /// Number of tokens by which longer prefixes are told apart.
    pub step: u32,
}

impl Rates {
    /// Anthropic's Messages, with a cache of 5 minutes. [`Rates::of`] knows the models that cache from another length on.
    pub const ANTHROPIC: Self = Self { write: 1.25, read: 0.1, least: 1_024, step: 1 };
    /// Anthropic's Messages, with a cache of one hour.
    pub const ANTHROPIC_HOUR: Self = Self { write: 2.0, ..Self::ANTHROPIC };
    /// OpenAI's models up to GPT-5.5, for which writing costs nothing extra.
    pub const OPENAI: Self = Self { write: 1.0, read: 0.1, least: 1_024, step: 128 };
    /// OpenAI's models from GPT-5.6 on.
    pub const OPENAI_LATER: Self = Self { write: 1.25, ..Self::OPENAI };
    /// Gemini from version 3 on, with implicit caching.
    pub const GEMINI: Self = Self { write: 1.0, read: 0.1, least: 4_096, step: 1 };
    /// Gemini 2.5, with implicit caching.
    pub const GEMINI_2_5: Self = Self { least: 2_048, ..Self::GEMINI };
    /// Server of unknown prices, such as a local one: what it reads from its cache is a tenth of the work.
    pub const UNKNOWN: Self = Self { write: 1.0, read: 0.1, least: 1, step: 1 };

    /// Returns the rates of an endpoint. A model that is not known has the rates of its API, and a base URL says nothing:
    /// behind it may be a proxy of the provider's.
    #[must_use]
    pub fn of(api: Api, endpoint: &Endpoint<'_>) -> Self {
        let model = endpoint.model.to_lowercase();
        match api {
            Api::Anthropic => Self { least: least_of_claude(&model), ..Self::ANTHROPIC },
            Api::OpenAiResponses => openai(&model),
            // Other providers and local servers have this API too.
            Api::OpenAiChat if model.is_empty() || version(&model, "gpt-").is_some() => {
                openai(&model)
            }
            Api::OpenAiChat => Self::UNKNOWN,
            Api::Gemini if version(&model, "gemini-").is_some_and(|version| version < (3, 0)) => {
                Self::GEMINI_2_5
            }
            Api::Gemini => Self::GEMINI,
        }
    }

    /// Returns how many tokens of a prefix the cache serves, if `shared` tokens are the same as in an earlier request.
    #[must_use]
    pub fn cached(&self, shared: u32) -> u32 {
        match shared.checked_sub(self.least) {
            Some(beyond) => shared - beyond % self.step.max(1),
            None => 0,
        }
    }

    /// Returns the price of a prompt of `tokens` tokens that shares its first `shared` ones with an earlier request.
    #[must_use]
    pub fn price_of(&self, tokens: u32, shared: u32) -> f64 {
        if tokens < self.least {
            return f64::from(tokens);
        }
        let cached = self.cached(shared.min(tokens));
        f64::from(cached) * self.read + f64::from(tokens - cached) * self.write
    }

    /// Returns the price of a prompt of `tokens` tokens, of which nothing is cached, and of those that are expected to follow
    /// it. Steps are left out: where they fall is chance.
    #[must_use]
    pub fn price_of_all(&self, tokens: u32, following: &Following) -> f64 {
        let rates = Self { step: 1, ..*self };
        let mut price = rates.price_of(tokens, 0);
        let mut before = tokens;
        for _ in 0..following.requests {
            let now = before.saturating_add(following.growth);
            price += rates.price_of(now, before);
            before = now;
        }
        price
    }

    /// Returns what is lost and what is saved by dropping definitions amid a conversation. Of a prompt that is too short
    /// for the cache nothing is lost, and a prompt that becomes too short for it is never read from it.
    #[must_use]
    pub fn dropping(&self, dropped: &Dropped) -> Dropping {
        let Dropped { tokens, behind, searched, prompt, left, requests } = *dropped;
        let least = u64::from(self.least);
        let is_cached = prompt >= least;
        let carried = searched as f64 + tokens as f64 * requests;
        let lost = if !is_cached {
            0.0
        } else if left < least {
            left as f64 * (1.0 - self.read) * requests
        } else {
            behind as f64 * self.extra()
        };
        Dropping { lost, saved: carried * if is_cached { self.read } else { 1.0 } }
    }

    /// Returns the price of writing tokens to the cache that it held already.
    #[must_use]
    pub fn price_of_writing_again(&self, tokens: u32) -> f64 {
        f64::from(tokens) * self.extra()
    }

    /// Returns what a token costs more if it is written instead of read.
    fn extra(&self) -> f64 {
        self.write - self.read
    }
}

/// Requests that are expected to follow another. Each is the one before with something more at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Following {
    /// Number of requests.
    pub requests: u32,
    /// Tokens that each has more than the one before.
    pub growth: u32,
}

/// Definitions that could be dropped from a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Dropped {
    /// Tokens of the definitions.
    pub tokens: u64,
    /// Tokens behind the first of them that stay. They are written to the cache again.
    pub behind: u64,
    /// Tokens of the request that a search would take if they are kept; 0 if none is expected.
    pub searched: u64,
    /// Tokens of the prompt with them.
    pub prompt: u64,
    /// Tokens of the prompt without them, and with what comes in their place.
    pub left: u64,
    /// Number of requests that the conversation is still expected to have, this one included.
    pub requests: f64,
}

/// Price of dropping definitions, in tokens of uncached input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropping {
    /// Price of what is not read from the cache any more.
    pub lost: f64,
    /// Price of what later requests do not carry.
    pub saved: f64,
}

impl Dropping {
    /// Returns the savings less the loss. They are negative if keeping is cheaper.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.saved - self.lost
    }
}

/// Rates of a conversation's prompts, and the number of requests to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptPrices {
    /// Rates of the provider.
    pub rates: Rates,
    /// Number of requests that the conversation is still expected to have, the next one included.
    pub requests: u32,
}

impl Default for PromptPrices {
    /// Returns the prices of an unknown provider, and the least number of requests.
    fn default() -> Self {
        Self { rates: Rates::UNKNOWN, requests: LEAST_REQUESTS }
    }
}

/// Returns a value as a model reads it: as JSON, whose texts have no escapes.
#[must_use]
pub fn as_read(value: &Value) -> String {
    let mut text = String::new();
    append(value, &mut text);
    text
}

fn append(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (place, (name, field)) in fields.iter().enumerate() {
                text.push_str(if place == 0 { "{\"" } else { ",\"" });
                text.push_str(name);
                text.push_str("\":");
                append(field, text);
            }
            text.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                text.push(if place == 0 { '[' } else { ',' });
                append(item, text);
            }
            text.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::String(written) => text.extend(["\"", written, "\""]),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

/// Returns the least number of tokens that a model of Anthropic's caches. Sonnet 4.6 is documented with 1,024, but was seen
/// to cache from 2,048 on (<https://github.com/anthropics/anthropic-sdk-python/issues/1194>).
fn least_of_claude(model: &str) -> u32 {
    let is_one_of = |names: &[&str]| names.iter().any(|name| model.contains(name));
    if is_one_of(&["opus-4-5", "opus-4-6", "haiku-4-5"]) {
        4_096
    } else if is_one_of(&["opus-4-7", "sonnet-4-6", "haiku-3", "3-haiku", "3-5-haiku"]) {
        2_048
    } else if is_one_of(&["opus-5", "fable-5", "mythos-5"]) {
        512
    } else {
        Rates::ANTHROPIC.least
    }
}

fn openai(model: &str) -> Rates {
    let is_later = version(model, "gpt-").is_some_and(|version| version >= (5, 6));
    if is_later { Rates::OPENAI_LATER } else { Rates::OPENAI }
}

/// Returns the version that follows `prefix` in a model's name, as major and minor number.
fn version(model: &str, prefix: &str) -> Option<(u32, u32)> {
    let (_, rest) = model.split_once(prefix)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let mut numbers = rest[..end].split('.').map(str::parse);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rates(api: Api, model: &str) -> Rates {
        Rates::of(api, &Endpoint { model, ..Endpoint::default() })
    }

    #[track_caller]
    fn check(price: f64, expected: f64) {
        assert!((price - expected).abs() < 1e-9, "{price} instead of {expected}");
    }

    #[test]
    fn rates_go_by_api_and_model() {
        for model in ["claude-opus-4-8", "claude-opus-4-1-20250805", "claude-sonnet-4-5", ""] {
            assert_eq!(rates(Api::Anthropic, model), Rates::ANTHROPIC, "{model}");
        }
        for model in ["claude-opus-4-6", "Claude-Haiku-4-5-20251001"] {
            assert_eq!(rates(Api::Anthropic, model).least, 4_096, "{model}");
        }
        for model in ["claude-opus-4-7", "claude-sonnet-4-6", "claude-3-5-haiku-latest"] {
            assert_eq!(rates(Api::Anthropic, model).least, 2_048, "{model}");
        }
        for model in ["claude-opus-5", "claude-opus-5-20260724", "claude-fable-5"] {
            assert_eq!(rates(Api::Anthropic, model).least, 512, "{model}");
        }
        for model in ["", "gpt-5.5", "gpt-4o", "gpt-5-mini", "o3"] {
            assert_eq!(rates(Api::OpenAiResponses, model), Rates::OPENAI, "{model}");
        }
        for model in ["gpt-5.6-terra", "GPT-6", "gpt-6.1", "gpt-10", "openai/gpt-5.12"] {
            assert_eq!(rates(Api::OpenAiResponses, model), Rates::OPENAI_LATER, "{model}");
            assert_eq!(rates(Api::OpenAiChat, model), Rates::OPENAI_LATER, "{model}");
        }
        assert_eq!(rates(Api::OpenAiChat, ""), Rates::OPENAI);
        assert_eq!(rates(Api::OpenAiChat, "qwen3-coder"), Rates::UNKNOWN);
        assert_eq!(rates(Api::Gemini, "models/gemini-2.5-pro"), Rates::GEMINI_2_5);
        for model in ["", "gemini-3-pro", "gemini-3.5-flash", "gemini-next"] {
            assert_eq!(rates(Api::Gemini, model), Rates::GEMINI, "{model}");
        }
    }

    #[test]
    fn texts_are_read_without_the_escapes_of_json() {
        let value = json!({ "a": [1, null, {}], "b": "{\"c\":\"d\"}\n", "e": [] });
        assert_eq!(as_read(&value), "{\"a\":[1,null,{}],\"b\":\"{\"c\":\"d\"}\n\",\"e\":[]}");
    }

    #[test]
    fn a_cache_serves_prefixes_from_a_length_on_and_in_steps() {
        let openai = Rates::OPENAI;
        for (shared, cached) in [(0, 0), (1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)]
        {
            assert_eq!(openai.cached(shared), cached, "{shared}");
        }
        assert_eq!(Rates::ANTHROPIC.cached(1_151), 1_151);
        assert_eq!(Rates::GEMINI.cached(4_095), 0);
    }

    #[test]
    fn what_is_not_served_is_written_unless_the_prompt_is_short() {
        let anthropic = Rates::ANTHROPIC;
        check(anthropic.price_of(1_000, 900), 1_000.0);
        check(anthropic.price_of(2_000, 0), 2_500.0);
        check(anthropic.price_of(2_000, 1_000), 2_500.0);
        check(anthropic.price_of(2_000, 1_500), 150.0 + 625.0);
        check(Rates::ANTHROPIC_HOUR.price_of(2_000, 1_500), 150.0 + 1_000.0);
        check(Rates::OPENAI.price_of(2_000, 1_200), 115.2 + 848.0);
        check(Rates::UNKNOWN.price_of(100, 200), 10.0);
        check(Rates::UNKNOWN.price_of(0, 0), 0.0);
    }

    #[test]
    fn dropping_pays_if_what_is_carried_on_outweighs_what_is_written_again() {
        let dropped = Dropped {
            tokens: 1_000,
            behind: 500,
            searched: 0,
            prompt: 9_000,
            left: 8_000,
            requests: 10.0,
        };
        check(Rates::OPENAI.dropping(&dropped).gain(), 1_000.0 - 450.0);
        check(Rates::ANTHROPIC.dropping(&dropped).gain(), 1_000.0 - 575.0);
        let searching = Dropped { searched: 9_000, ..dropped };
        check(Rates::OPENAI.dropping(&searching).gain(), 1_900.0 - 450.0);
        let long = Dropped { behind: 50_000, prompt: 60_000, left: 59_000, ..dropped };
        assert!(Rates::OPENAI.dropping(&long).gain() < 0.0);
    }

    #[test]
    fn dropping_costs_nothing_where_nothing_is_cached_and_all_where_the_rest_is_too_short() {
        let short = Dropped {
            tokens: 1_000,
            behind: 2_000,
            searched: 4_000,
            prompt: 4_000,
            left: 3_000,
            requests: 2.0,
        };
        let dropping = Rates::GEMINI.dropping(&short);
        check(dropping.lost, 0.0);
        check(dropping.saved, 2_000.0 + 4_000.0);
        let shortened = Rates::GEMINI.dropping(&Dropped { prompt: 4_500, left: 3_500, ..short });
        check(shortened.lost, 3_500.0 * 0.9 * 2.0);
        check(shortened.saved, 200.0 + 400.0);
    }

    #[test]
    fn what_follows_is_read_from_the_cache_once_the_requests_are_long_enough() {
        let following = Following { requests: 2, growth: 100 };
        check(Rates::UNKNOWN.price_of_all(1_000, &following), 1_000.0 + 200.0 + 210.0);
        check(Rates::ANTHROPIC.price_of_all(900, &following), 900.0 + 1_000.0 + 1_375.0);
        let longer = Rates::ANTHROPIC.price_of_all(1_024, &following);
        check(longer, 1_280.0 + (102.4 + 125.0) + (112.4 + 125.0));
        check(Rates::OPENAI.price_of_all(7, &Following { requests: 0, growth: 1 }), 7.0);
        check(Rates::ANTHROPIC.price_of_writing_again(1_000), 1_150.0);
    }
}
