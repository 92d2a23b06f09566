//! Rules by which prompts are priced, for benchmarks in other languages. They are those of [`toolgate_llm::price`].

use serde::Serialize;
use toolgate_llm::price::Rates;
use toolgate_llm::strategy::{Api, Endpoint};

use crate::conversations::Provider;

/// Rules for the prompts of a model. Prices are numbers of tokens of input that is neither read from a cache nor written to
/// one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prices {
    /// Name of the API, such as `openai_chat`.
    pub api: &'static str,
    /// Name of the model.
    pub model: String,
    /// Price of a token that is written to the cache.
    pub write: f64,
    /// Price of a token that is read from the cache.
    pub read: f64,
    /// Least number of tokens of a prefix that is cached.
    pub least: u32,
    /// Number of tokens by which longer prefixes are told apart.
    pub step: u32,
}

impl Prices {
    /// Returns the rules for a model of an API, or `None` if no API has this name.
    #[must_use]
    pub fn of(api: &str, model: &str) -> Option<Self> {
        let api = Api::named(api)?;
        let Rates { write, read, least, step } =
            Rates::of(api, &Endpoint { model, ..Endpoint::default() });
        Some(Self { api: api.name(), model: model.to_owned(), write, read, least, step })
    }

    /// Returns the rules for the models that conversations are priced for.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let named = |provider: &Provider| Self::of(provider.api.name(), provider.model);
        Provider::ALL.iter().filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_strategies_are_chosen_by() {
        assert_eq!(Prices::all().len(), Provider::ALL.len());
        for (prices, provider) in Prices::all().iter().zip(Provider::ALL) {
            let Prices { write, read, least, step, .. } = *prices;
            assert_eq!(Rates { write, read, least, step }, provider.rates(), "{prices:?}");
        }
        assert_eq!(Prices::of("telepathy", "gpt-5.5"), None);
    }
}
