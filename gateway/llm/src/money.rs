//! Money of what the proxy did: what the provider's usage cost, and what the conversations would have cost without the proxy.
//! Where it is not known what the provider's cache would have served without the proxy, it is taken to be all.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};
use serde_json::Value;
use toolgate_llm::price::Rates;
use toolgate_llm::strategy::{Api, Endpoint};

use crate::config::PriceConfig;

/// Parts of a dollar that are counted.
const PARTS: i128 = 1_000_000_000_000;

/// Most tokens of one kind that an answer may have used. With more the sums would overflow, and no model has a thousandth of it.
const TOKENS_MAX: u64 = 1_000_000_000_000;

/// Amount of US dollars, in parts of a millionth of a millionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(i128);

impl Usd {
    /// Returns the price of one token, where a million cost so many dollars.
    fn of_a_token(million: f64) -> Self {
        // Prices are bounded, so that nothing is cut off.
        Self((million * 1e6).round() as i128)
    }

    /// Returns the price of so many tokens of this price.
    fn times(self, tokens: u64) -> Self {
        Self(self.0.saturating_mul(i128::from(tokens)))
    }

    /// Returns this price's share for `part` of `whole` tokens.
    fn share(self, part: u64, whole: u64) -> Self {
        Self(self.0.saturating_mul(i128::from(part)) / i128::from(whole.max(1)))
    }

    /// Returns an amount of so many dollars.
    #[must_use]
    pub fn of(dollars: f64) -> Self {
        Self((dollars * PARTS as f64).round() as i128)
    }

    /// Returns the amount in dollars.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl Neg for Usd {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sub for Usd {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let dollars = self.dollars().abs();
        let digits = match dollars {
            0.0 | 1.0.. => 2,
            0.01.. => 4,
            _ => 6,
        };
        write!(formatter, "{sign}${dollars:.digits$}")
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

/// Sums in money of requests whose usage and price are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of these requests of hosts.
    pub requests: u64,
    /// Measured: price of the provider's usage.
    pub spent: Usd,
    /// Measured: share of it for requests that hosts did not see, behind searches and refused calls.
    pub hidden: Usd,
    /// Computed: price of the same conversations without the proxy.
    pub without: Usd,
    /// Computed: price of what the provider's cache would have served without the proxy, and did not.
    pub lost_cache: Usd,
}

impl Cost {
    /// Returns the computed savings, net of hidden requests and of lost cache; negative if the proxy cost more.
    #[must_use]
    pub fn saved(&self) -> Usd {
        self.without - self.spent
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.requests = self.requests.saturating_add(more.requests);
        self.spent += more.spent;
        self.hidden += more.hidden;
        self.without += more.without;
        self.lost_cache += more.lost_cache;
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Cost", 6)?;
        fields.serialize_field("requests", &self.requests)?;
        fields.serialize_field("spent", &self.spent)?;
        fields.serialize_field("hidden_requests", &self.hidden)?;
        fields.serialize_field("without_toolgate_computed", &self.without)?;
        fields.serialize_field("lost_cache_computed", &self.lost_cache)?;
        fields.serialize_field("saved_computed", &self.saved())?;
        fields.end()
    }
}

/// Prices of the tokens of one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tariff {
    api: Api,
    input: Usd,
    read: Usd,
    written: Usd,
    written_for_an_hour: Usd,
    output: Usd,
    /// Least number of tokens of a prefix that is cached.
    least: u64,
}

/// Tokens that a provider counted for one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    /// Input that is neither read from the cache nor written to it.
    plain: u64,
    read: u64,
    written: u64,
    written_for_an_hour: u64,
    output: u64,
}

/// Facts of a request that tell what it would have been without the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// Tokens of the definitions that it lacks.
    pub(crate) deferred: u64,
    /// Tokens that it has in their place.
    pub(crate) instead: u64,
    /// Tokens that the conversation's last request had in their place; 0 if that is not known.
    pub(crate) instead_before: u64,
    /// Tokens from the model's last answer on; `None` in a conversation's first request.
    pub(crate) new: Option<u64>,
    /// True if it begins as the conversation's last request did, as far as that is the proxy's to say.
    pub(crate) is_continued: bool,
}

/// Costs of one turn, request by request.
#[derive(Debug)]
pub(crate) struct Tally {
    tariff: Tariff,
    rewritten: Rewritten,
    /// Price of the last answer's output; `None` before the first.
    last_output: Option<Usd>,
}

impl Tariff {
    /// Returns the prices of a model, where the cache's are shares of the price of input if they are not given.
    pub(crate) fn new(api: Api, model: &str, price: PriceConfig) -> Self {
        let rates = Rates::of(api, &Endpoint { model, ..Endpoint::default() });
        let share =
            |given: Option<f64>, share: f64| Usd::of_a_token(given.unwrap_or(price.input * share));
        Self {
            api,
            input: Usd::of_a_token(price.input),
            read: share(price.cached, rates.read),
            written: share(price.written, rates.write),
            written_for_an_hour: share(None, Rates::ANTHROPIC_HOUR.write),
            output: Usd::of_a_token(price.output),
            least: rates.least.into(),
        }
    }

    /// Reads a provider's usage; `None` if it tells nothing.
    fn counted(&self, usage: &Value) -> Option<Counted> {
        let number = |value: &Value| value.as_u64().unwrap_or_default().min(TOKENS_MAX);
        let counted = match self.api {
            Api::Anthropic => {
                let all = number(&usage["cache_creation_input_tokens"]);
                let hour = number(&usage["cache_creation"]["ephemeral_1h_input_tokens"]).min(all);
                Counted {
                    plain: number(&usage["input_tokens"]),
                    read: number(&usage["cache_read_input_tokens"]),
                    written: all - hour,
                    written_for_an_hour: hour,
                    output: number(&usage["output_tokens"]),
                }
            }
            Api::OpenAiChat => {
                let input = number(&usage["prompt_tokens"]);
                let output = number(&usage["completion_tokens"]);
                self.of_openai(input, &usage["prompt_tokens_details"], output)
            }
            Api::OpenAiResponses => {
                let input = number(&usage["input_tokens"]);
                let output = number(&usage["output_tokens"]);
                self.of_openai(input, &usage["input_tokens_details"], output)
            }
            Api::Gemini => {
                let input = number(&usage["promptTokenCount"]);
                let read = number(&usage["cachedContentTokenCount"]).min(input);
                let thoughts = number(&usage["thoughtsTokenCount"]);
                let output = number(&usage["candidatesTokenCount"]) + thoughts;
                Counted { plain: input - read, read, output, ..Counted::default() }
            }
        };
        (counted != Counted::default()).then_some(counted)
    }

    /// Returns the counts of an API whose input has what the cache served in it. Where the provider does not tell what was written, a
    /// prompt that is long enough is written where that costs more.
    fn of_openai(&self, input: u64, details: &Value, output: u64) -> Counted {
        let told = |name: &str| details[name].as_u64();
        let read = told("cached_tokens").unwrap_or_default().min(input);
        let rest = input - read;
        let is_written = self.written > self.input && input >= self.least;
        let by_rule = if is_written { rest } else { 0 };
        let written = told("cache_write_tokens").unwrap_or(by_rule).min(rest);
        Counted { plain: rest - written, read, written, output, ..Counted::default() }
    }

    /// Returns the price of input that the cache did not serve.
    fn fresh(&self, counted: &Counted) -> Usd {
        self.input.times(counted.plain)
            + self.written.times(counted.written)
            + self.written_for_an_hour.times(counted.written_for_an_hour)
    }

    fn prompt(&self, counted: &Counted) -> Usd {
        self.fresh(counted) + self.read.times(counted.read)
    }

    /// Returns the price of a prompt without the proxy, and how much cache was lost.
    fn prompt_without(&self, counted: &Counted, rewritten: &Rewritten) -> Without {
        let Rewritten { deferred, instead, instead_before, new, is_continued } = *rewritten;
        let fresh = counted.fresh();
        let prompt = fresh + counted.read;
        let whole = prompt.saturating_sub(instead).saturating_add(deferred.min(TOKENS_MAX));
        // What the cache served is the beginning of the prompt, where the definitions would have stood.
        let begun = counted.read.saturating_add(deferred).saturating_sub(instead_before);
        let seen = if counted.read > 0 { begun.min(whole) } else { 0 };
        let is_short = prompt < self.least;
        // Anthropic caches what hosts mark, and nothing else.
        let is_unmarked = self.api == Api::Anthropic && !is_short && prompt == counted.plain;
        let shared = match new {
            Some(new) if !is_unmarked && (is_short || !is_continued) => {
                let shared = whole.saturating_sub(new);
                if shared < self.least { seen } else { shared.max(seen) }
            }
            _ => seen,
        };
        let price = |shared: u64| {
            let left = whole - shared;
            let fresh = match fresh {
                0 => self.input.times(left),
                fresh => self.fresh(counted).share(left, fresh),
            };
            self.read.times(shared) + fresh
        };
        let price_of_shared = price(shared);
        let lost_cache = (price(seen) - price_of_shared).max(Usd::default());
        Without { price: price_of_shared, lost_cache }
    }
}

impl Counted {
    /// Returns the tokens of input that the cache did not serve.
    fn fresh(&self) -> u64 {
        self.plain + self.written + self.written_for_an_hour
    }
}

/// Price of a prompt without the proxy.
struct Without {
    price: Usd,
    /// Share of the difference that is lost cache.
    lost_cache: Usd,
}

impl Tally {
    pub(crate) fn new(tariff: Tariff, rewritten: Rewritten) -> Self {
        Self { tariff, rewritten, last_output: None }
    }

    /// Returns what the usage of the turn's next answer adds to the sums; `None` if it tells nothing. Without the proxy a turn has one
    /// request, and the output of its last answer.
    pub(crate) fn pay(&mut self, usage: &Value) -> Option<Cost> {
        let counted = self.tariff.counted(usage)?;
        let prompt = self.tariff.prompt(&counted);
        let output = self.tariff.output.times(counted.output);
        let spent = prompt + output;
        let Some(before) = self.last_output.replace(output) else {
            let Without { price, lost_cache } =
                self.tariff.prompt_without(&counted, &self.rewritten);
            let without = price + output;
            return Some(Cost { requests: 1, spent, hidden: Usd::default(), without, lost_cache });
        };
        let hidden = prompt + before;
        Some(Cost { spent, hidden, without: output - before, ..Cost::default() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Prices of a token: 5 millionths of a dollar of input, 25 of output, .5 read, 6.25 written, and 10 written for an hour.
    const PRICE: PriceConfig =
        PriceConfig { input: 5.0, output: 25.0, cached: None, written: None };

    fn tariff(api: Api, model: &str) -> Tariff {
        Tariff::new(api, model, PRICE)
    }

    fn micros(amount: Usd) -> f64 {
        (amount.dollars() * 1e9).round() / 1e3
    }

    /// Returns what one answer of Claude costs: spent, without the proxy, saved and lost cache, in millionths of a dollar.
    fn claude(usage: &Value, rewritten: Rewritten) -> [f64; 4] {
        let mut tally = Tally::new(tariff(Api::Anthropic, "claude-opus-4-8"), rewritten);
        let cost = tally.pay(usage).expect("a usage");
        [cost.spent, cost.without, cost.saved(), cost.lost_cache].map(micros)
    }

    fn usage(plain: u64, read: u64, written: u64, output: u64) -> Value {
        json!({ "input_tokens": plain, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": output })
    }

    const FIRST: Rewritten = Rewritten {
        deferred: 20_000,
        instead: 1_000,
        instead_before: 0,
        new: None,
        is_continued: false,
    };

    const LATER: Rewritten = Rewritten {
        instead: 1_200,
        instead_before: 1_000,
        new: Some(500),
        is_continued: true,
        ..FIRST
    };

    #[test]
    fn a_first_request_would_have_written_all_definitions() {
        let spent = 4_000.0 * 6.25 + 100.0 * 25.0;
        let without = 23_000.0 * 6.25 + 100.0 * 25.0;
        let costs = claude(&usage(0, 0, 4_000, 100), FIRST);
        assert_eq!(costs, [spent, without, 19_000.0 * 6.25, 0.0]);
        // Another conversation left the definitions in the cache.
        let costs = claude(&usage(0, 2_000, 2_000, 0), FIRST);
        assert_eq!(costs[1], 22_000.0 * 0.5 + 1_000.0 * 6.25);
    }

    #[test]
    fn a_later_request_would_have_read_the_definitions() {
        let costs = claude(&usage(10, 4_000, 700, 0), LATER);
        let spent = 10.0 * 5.0 + 4_000.0 * 0.5 + 700.0 * 6.25;
        let fresh = (10.0 * 5.0 + 700.0 * 6.25) * 510.0 / 710.0;
        let without = (4_000.0 + 19_000.0) * 0.5 + fresh;
        assert_eq!(costs[0], spent);
        assert!((costs[1] - without).abs() < 0.01, "{} instead of {without}", costs[1]);
        assert_eq!(costs[3], 0.0);
    }

    #[test]
    fn a_cache_that_ran_out_would_have_run_out_without_the_proxy_too() {
        let costs = claude(&usage(0, 0, 5_000, 0), LATER);
        assert_eq!(costs, [5_000.0 * 6.25, 23_800.0 * 6.25, 18_800.0 * 6.25, 0.0]);
    }

    #[test]
    fn a_cache_that_the_proxy_lost_counts_against_it() {
        let broken = Rewritten { is_continued: false, instead_before: 0, ..LATER };
        let costs = claude(&usage(0, 0, 50_000, 0), broken);
        let spent = 50_000.0 * 6.25;
        let without = 68_300.0 * 0.5 + 500.0 * 6.25;
        assert_eq!(costs, [spent, without, without - spent, 68_300.0 * 5.75]);
        assert!(costs[2] < 0.0, "it cost more than it saved");
        // What became too short for the cache.
        let costs = claude(&usage(1_000, 0, 0, 0), Rewritten { instead: 500, ..LATER });
        assert_eq!(costs[1], 20_000.0 * 0.5 + 500.0 * 5.0);
        // Hosts that mark nothing lose nothing.
        let costs = claude(&usage(50_000, 0, 0, 0), broken);
        assert_eq!(costs, [50_000.0 * 5.0, 68_800.0 * 5.0, 18_800.0 * 5.0, 0.0]);
    }

    #[test]
    fn hidden_requests_count_against_the_proxy() {
        let mut tally = Tally::new(tariff(Api::Anthropic, "claude-opus-4-8"), FIRST);
        let mut sum = Cost::default();
        sum.add(&tally.pay(&usage(0, 0, 4_000, 40)).expect("a usage"));
        assert_eq!(tally.pay(&Value::Null), None);
        sum.add(&tally.pay(&usage(0, 4_000, 300, 100)).expect("a usage"));
        assert_eq!(sum.requests, 1);
        assert_eq!(micros(sum.spent), 4_300.0 * 6.25 + 4_000.0 * 0.5 + 140.0 * 25.0);
        assert_eq!(micros(sum.hidden), 300.0 * 6.25 + 4_000.0 * 0.5 + 40.0 * 25.0);
        assert_eq!(micros(sum.without), 23_000.0 * 6.25 + 100.0 * 25.0);
        assert_eq!(micros(sum.saved()), 19_000.0 * 6.25 - micros(sum.hidden));
        let shown = serde_json::to_value(sum).expect("JSON");
        assert_eq!((&shown["requests"], &shown["hidden_requests"]), (&json!(1), &json!(0.004875)));
    }

    #[test]
    fn usage_is_read_as_each_provider_tells_it() {
        let anthropic = json!({ "input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3,
            "cache_creation_input_tokens": 9, "cache_creation": { "ephemeral_1h_input_tokens": 4 } });
        let chat = json!({ "prompt_tokens": 2_000, "completion_tokens": 3,
            "prompt_tokens_details": { "cached_tokens": 1_024 } });
        let responses = json!({ "input_tokens": 2_000, "output_tokens": 3,
            "input_tokens_details": { "cached_tokens": 1_024, "cache_write_tokens": 100 } });
        let gemini = json!({ "promptTokenCount": 10, "cachedContentTokenCount": 4,
            "candidatesTokenCount": 2, "thoughtsTokenCount": 3 });
        let plain = |plain, read, output| Counted { plain, read, output, ..Counted::default() };
        for (api, model, usage, counted) in [
            (
                Api::Anthropic,
                "claude-opus-4-8",
                &anthropic,
                Counted { written: 5, written_for_an_hour: 4, ..plain(1, 2, 3) },
            ),
            (Api::OpenAiChat, "gpt-5", &chat, plain(976, 1_024, 3)),
            (Api::OpenAiChat, "qwen", &chat, plain(976, 1_024, 3)),
            (Api::OpenAiChat, "gpt-5.6", &chat, Counted { written: 976, ..plain(0, 1_024, 3) }),
            (
                Api::OpenAiResponses,
                "gpt-5.6",
                &responses,
                Counted { written: 100, ..plain(876, 1_024, 3) },
            ),
            (Api::Gemini, "gemini-3-pro", &gemini, plain(6, 4, 5)),
        ] {
            assert_eq!(tariff(api, model).counted(usage), Some(counted), "{model}");
        }
        assert_eq!(tariff(Api::Gemini, "g").counted(&json!({ "input_tokens": 1 })), None);
    }

    #[test]
    fn prices_of_the_cache_may_be_given() {
        let price = PriceConfig { cached: Some(0.25), written: Some(7.0), ..PRICE };
        let tariff = Tariff::new(Api::Anthropic, "claude-opus-4-8", price);
        let cost = Tally::new(tariff, FIRST).pay(&usage(0, 1_000, 100, 0)).expect("a usage");
        assert_eq!(micros(cost.spent), 250.0 + 700.0);
    }

    #[test]
    fn absurd_counts_overflow_nothing() {
        let price = PriceConfig { input: 1e6, output: 1e6, cached: None, written: None };
        for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini] {
            let all = json!({ "input_tokens": u64::MAX, "prompt_tokens": u64::MAX,
                "promptTokenCount": u64::MAX, "output_tokens": u64::MAX, "completion_tokens": u64::MAX,
                "candidatesTokenCount": u64::MAX, "cache_creation_input_tokens": u64::MAX,
                "cache_read_input_tokens": u64::MAX, "thoughtsTokenCount": u64::MAX });
            let rewritten = Rewritten { deferred: u64::MAX, instead: u64::MAX, ..FIRST };
            let mut tally = Tally::new(Tariff::new(api, "gpt-5.6", price), rewritten);
            let mut sum = Cost::default();
            for _ in 0..3 {
                sum.add(&tally.pay(&all).expect("a usage"));
            }
            assert!(sum.spent > Usd::default() && sum.without > Usd::default(), "{api:?}");
        }
    }

    #[test]
    fn amounts_are_shown_in_dollars() {
        for (dollars, shown) in [
            (0.0, "$0.00"),
            (1_234.567, "$1234.57"),
            (0.1234, "$0.1234"),
            (-0.02, "-$0.0200"),
            (0.001_234, "$0.001234"),
        ] {
            assert_eq!(Usd::of(dollars).to_string(), shown);
        }
    }
}
