//! Account of what the proxy did: requests, tokens of tools that were not sent, and the provider's own usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

/// Account of one proxy, since its start. Cloning is cheap and shares it.
#[derive(Debug, Clone, Default)]
pub struct Savings(Arc<Mutex<Totals>>);

/// Sums of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests whose tools were deferred.
    pub rewritten: u64,
    /// Chat requests that were sent as they came, by reason.
    pub passed: BTreeMap<&'static str, u64>,
    /// Computed: cl100k tokens of the definitions that rewritten requests came with and that were deferred.
    pub deferred_tokens: u64,
    /// Computed: cl100k tokens that were sent in their place: the search, the envelope and descriptions.
    pub instead_tokens: u64,
    /// Searches that were answered.
    pub searches: u64,
    /// Requests that searches added.
    pub search_requests: u64,
    /// Measured: the provider's usage of rewritten requests, over all of their parts, as far as it came.
    pub usage: Usage,
}

/// Tokens as the provider counted them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Answers that told their usage.
    pub answers: u64,
    /// Tokens of input, without those that a cache served where the provider counts them apart.
    pub input_tokens: u64,
    /// Tokens of input that a cache served.
    pub cached_tokens: u64,
    /// Tokens of output.
    pub output_tokens: u64,
}

impl Totals {
    /// Returns the computed tokens that were not sent; negative if more were.
    #[must_use]
    pub fn saved_tokens(&self) -> i128 {
        i128::from(self.deferred_tokens) - i128::from(self.instead_tokens)
    }
}

impl Savings {
    /// Returns the sums so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.0.lock().clone()
    }

    pub(crate) fn passed(&self, reason: &'static str) {
        *self.0.lock().passed.entry(reason).or_default() += 1;
    }

    pub(crate) fn rewritten(&self, deferred: u64, instead: u64) {
        let mut totals = self.0.lock();
        totals.rewritten += 1;
        totals.deferred_tokens += deferred;
        totals.instead_tokens += instead;
    }

    /// Notes a further request of the same turn. It would not have been made without the proxy, so that it saves nothing.
    pub(crate) fn searched(&self, searches: u64) {
        let mut totals = self.0.lock();
        totals.searches += searches;
        totals.search_requests += 1;
    }

    /// Notes the usage of an answer, in the form of any of the providers.
    pub(crate) fn used(&self, usage: &Value) {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let input = number(&usage["input_tokens"])
            + number(&usage["prompt_tokens"])
            + number(&usage["promptTokenCount"]);
        let output = number(&usage["output_tokens"])
            + number(&usage["completion_tokens"])
            + number(&usage["candidatesTokenCount"])
            + number(&usage["thoughtsTokenCount"]);
        if input == 0 && output == 0 {
            return;
        }
        let cached = number(&usage["cache_read_input_tokens"])
            + number(&usage["prompt_tokens_details"]["cached_tokens"])
            + number(&usage["input_tokens_details"]["cached_tokens"])
            + number(&usage["cachedContentTokenCount"]);
        let mut totals = self.0.lock();
        totals.usage.answers += 1;
        totals.usage.input_tokens += input;
        totals.usage.cached_tokens += cached;
        totals.usage.output_tokens += output;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_are_kept() {
        let savings = Savings::default();
        savings.passed("late");
        savings.rewritten(100, 30);
        savings.rewritten(100, 130);
        savings
            .used(&json!({ "input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 7 }));
        savings.used(&json!({ "prompt_tokens": 5, "completion_tokens": 1,
            "prompt_tokens_details": { "cached_tokens": 3 } }));
        savings.used(&json!({ "input_tokens": 1, "output_tokens": 1,
            "input_tokens_details": { "cached_tokens": 1 } }));
        savings.used(&json!({ "promptTokenCount": 2, "candidatesTokenCount": 1,
            "thoughtsTokenCount": 3, "cachedContentTokenCount": 1 }));
        savings.used(&Value::Null);
        let totals = savings.totals();
        assert_eq!((totals.rewritten, totals.saved_tokens()), (2, 40));
        assert_eq!(totals.passed["late"], 1);
        let usage = Usage { answers: 4, input_tokens: 13, cached_tokens: 12, output_tokens: 8 };
        assert_eq!(totals.usage, usage);
    }
}
