//! Accounts of what the proxy did, by tenant and model: requests, tokens of tools that were not sent, and the provider's own
//! usage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use toolgate_llm::strategy::{Api, Strategy};

use crate::metrics::{Done, Metrics};
use crate::money::Cost;

/// Most models of one tenant that have accounts of their own.
const MODELS_MAX: usize = 64;

/// Longest name of a model in an account, in bytes.
const MODEL_NAME_MAX: usize = 128;

/// Name of the account of a tenant's other models.
const OTHER: &str = "other";

/// Accounts of one proxy, since its start. Cloning is cheap and shares them.
#[derive(Debug, Clone, Default)]
pub struct Savings(Arc<Books>);

#[derive(Debug, Default)]
struct Books {
    accounts: Mutex<BTreeMap<Arc<str>, BTreeMap<String, Totals>>>,
    metrics: Metrics,
}

/// Account of one tenant's requests for one model.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    savings: Savings,
    tenant: Arc<str>,
    api: Api,
    model: String,
}

/// Sums of a tenant's model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelTotals {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The model as requests name it; empty where it could not be read.
    pub model: String,
    /// Its sums.
    #[serde(flatten)]
    pub totals: Totals,
}

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
    /// Computed: cl100k tokens of requests that hosts did not see, behind searches and refused calls. Without the proxy they would
    /// not have been made.
    pub hop_tokens: u64,
    /// Searches that were answered.
    pub searches: u64,
    /// Requests that searches added.
    pub search_requests: u64,
    /// Calls of models by what Gate said of them.
    pub calls: BTreeMap<String, u64>,
    /// Requests that refused calls added.
    pub refusal_requests: u64,
    /// Measured: the provider's usage of rewritten requests, over all of their parts, as far as it came.
    pub usage: Usage,
    /// Sums in money of rewritten requests; `None` where no price is known.
    #[serde(rename = "cost_usd", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
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
    /// Returns the computed tokens that were not sent, net of those that were sent besides; negative if more were.
    #[must_use]
    pub fn saved_tokens(&self) -> i128 {
        let sent = i128::from(self.instead_tokens) + i128::from(self.hop_tokens);
        i128::from(self.deferred_tokens) - sent
    }

    fn add(&mut self, more: &Self) {
        self.rewritten += more.rewritten;
        for (reason, count) in &more.passed {
            *self.passed.entry(reason).or_default() += count;
        }
        self.deferred_tokens += more.deferred_tokens;
        self.instead_tokens += more.instead_tokens;
        self.hop_tokens += more.hop_tokens;
        self.searches += more.searches;
        self.search_requests += more.search_requests;
        for (outcome, count) in &more.calls {
            *self.calls.entry(outcome.clone()).or_default() += count;
        }
        self.refusal_requests += more.refusal_requests;
        self.usage.answers += more.usage.answers;
        self.usage.input_tokens += more.usage.input_tokens;
        self.usage.cached_tokens += more.usage.cached_tokens;
        self.usage.output_tokens += more.usage.output_tokens;
        if let Some(cost) = &more.cost {
            self.cost.get_or_insert_default().add(cost);
        }
    }
}

impl Savings {
    /// Returns the sums of all tenants so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals_of(None)
    }

    /// Returns the accounts so far, by tenant and model.
    #[must_use]
    pub fn accounts(&self) -> Vec<ModelTotals> {
        self.accounts_of(None)
    }

    /// Returns the sums of one tenant, or of all.
    pub(crate) fn totals_of(&self, tenant: Option<&str>) -> Totals {
        let mut sum = Totals::default();
        self.accounts_of(tenant).iter().for_each(|account| sum.add(&account.totals));
        sum
    }

    /// Returns the accounts of one tenant, or of all, by tenant and model.
    pub(crate) fn accounts_of(&self, tenant: Option<&str>) -> Vec<ModelTotals> {
        let accounts = self.0.accounts.lock();
        let seen = accounts.iter().filter(|(of, _)| tenant.is_none_or(|tenant| tenant == &***of));
        let models = seen.flat_map(|(tenant, models)| {
            models.iter().map(|(model, totals)| ModelTotals {
                tenant: Arc::clone(tenant),
                model: model.clone(),
                totals: totals.clone(),
            })
        });
        models.collect()
    }

    /// Returns the account of a tenant's requests for a model.
    pub(crate) fn account(&self, tenant: &Arc<str>, api: Api, model: &str) -> Account {
        let savings = self.clone();
        Account { savings, tenant: Arc::clone(tenant), api, model: model.to_owned() }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }
}

impl Account {
    /// Counts a request that is sent as it came.
    pub(crate) fn passed(&self, reason: &'static str) {
        self.change(|totals| *totals.passed.entry(reason).or_default() += 1);
        self.done("pass", reason);
    }

    /// Counts a request whose tools were deferred.
    pub(crate) fn rewritten(&self, strategy: Strategy, deferred: u64, instead: u64) {
        self.change(|totals| {
            totals.rewritten += 1;
            totals.deferred_tokens += deferred;
            totals.instead_tokens += instead;
        });
        self.done(strategy.name(), "");
        self.metrics().rewritten(&self.model, deferred, instead);
    }

    /// Notes a further request of the same turn. It would not have been made without the proxy, so that it saves nothing.
    pub(crate) fn searched(&self, searches: u64) {
        self.change(|totals| {
            totals.searches += searches;
            totals.search_requests += 1;
        });
        self.metrics().hop("search", searches);
    }

    /// Counts the tokens of a further request that the provider took.
    pub(crate) fn hop(&self, tokens: u64) {
        self.change(|totals| totals.hop_tokens += tokens);
        self.metrics().hop_tokens(&self.model, tokens);
    }

    /// Notes a further request of the same turn in which the model is told what was wrong with a call.
    pub(crate) fn told_refusals(&self) {
        self.change(|totals| totals.refusal_requests += 1);
        self.metrics().hop("refusal", 0);
    }

    /// Counts a call of the model.
    pub(crate) fn gated(&self, outcome: &str) {
        self.change(|totals| *totals.calls.entry(outcome.to_owned()).or_default() += 1);
        self.metrics().gated(outcome);
    }

    /// Notes what the proxy added to a request's time.
    pub(crate) fn added(&self, strategy: &'static str, time: Duration) {
        self.metrics().added(strategy, time);
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
        self.change(|totals| {
            totals.usage.answers += 1;
            totals.usage.input_tokens += input;
            totals.usage.cached_tokens += cached;
            totals.usage.output_tokens += output;
        });
        for (kind, tokens) in [("input", input), ("cached", cached), ("output", output)] {
            self.metrics().used(&self.model, kind, tokens);
        }
    }

    /// Notes what an answer cost.
    pub(crate) fn cost(&self, cost: &Cost) {
        self.change(|totals| totals.cost.get_or_insert_default().add(cost));
        self.metrics().spent(&self.model, cost.spent.dollars());
    }

    fn done(&self, strategy: &'static str, reason: &'static str) {
        self.metrics().done(Done { api: self.api, model: &self.model, strategy, reason });
    }

    fn metrics(&self) -> &Metrics {
        self.savings.metrics()
    }

    fn change(&self, change: impl FnOnce(&mut Totals)) {
        let mut accounts = self.savings.0.accounts.lock();
        let models = accounts.entry(Arc::clone(&self.tenant)).or_default();
        let has_place = models.len() < MODELS_MAX && self.model.len() <= MODEL_NAME_MAX;
        let is_own = has_place || models.contains_key(&self.model);
        let name = if is_own { self.model.as_str() } else { OTHER };
        change(models.entry(name.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account(savings: &Savings, tenant: &str, model: &str) -> Account {
        savings.account(&Arc::from(tenant), Api::Anthropic, model)
    }

    #[test]
    fn sums_are_kept() {
        let savings = Savings::default();
        let own = account(&savings, "a", "m");
        own.passed("late");
        own.rewritten(Strategy::Envelope, 100, 30);
        own.rewritten(Strategy::Envelope, 100, 130);
        own.used(&json!({ "input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 7 }));
        own.used(&json!({ "prompt_tokens": 5, "completion_tokens": 1,
            "prompt_tokens_details": { "cached_tokens": 3 } }));
        own.used(&json!({ "input_tokens": 1, "output_tokens": 1,
            "input_tokens_details": { "cached_tokens": 1 } }));
        own.used(&json!({ "promptTokenCount": 2, "candidatesTokenCount": 1,
            "thoughtsTokenCount": 3, "cachedContentTokenCount": 1 }));
        own.used(&Value::Null);
        let totals = savings.totals();
        assert_eq!((totals.rewritten, totals.saved_tokens()), (2, 40));
        own.hop(50);
        assert_eq!(savings.totals().saved_tokens(), -10, "what is saved is net");
        assert_eq!(totals.passed["late"], 1);
        let usage = Usage { answers: 4, input_tokens: 13, cached_tokens: 12, output_tokens: 8 };
        assert_eq!(totals.usage, usage);
        let text = savings.metrics().exposed();
        assert!(text.contains("toolgate_llm_deferred_tokens_total{model=\"m\"} 200"), "{text}");
    }

    #[test]
    fn accounts_are_apart_and_bounded() {
        let savings = Savings::default();
        account(&savings, "a", "m").passed("late");
        for number in 0..2 * MODELS_MAX {
            account(&savings, "b", &format!("m{number}")).gated("allowed");
        }
        assert_eq!(savings.totals_of(Some("a")).calls, BTreeMap::new());
        assert_eq!(savings.totals_of(Some("b")).calls["allowed"], 2 * MODELS_MAX as u64);
        let of_b = savings.accounts_of(Some("b"));
        assert_eq!(of_b.len(), MODELS_MAX + 1);
        assert!(of_b.iter().any(|account| account.model == OTHER));
        let shown = serde_json::to_value(savings.accounts_of(Some("a"))).expect("JSON");
        assert_eq!((&shown[0]["tenant"], &shown[0]["passed"]["late"]), (&json!("a"), &json!(1)));
    }
}
