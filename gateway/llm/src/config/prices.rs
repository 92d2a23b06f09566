//! Prices of models in money, as the proxy's file names them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toolgate_core::deferral::Pattern;

/// Highest price of a million tokens, in US dollars. A higher one is a mistake of the unit.
const PRICE_MAX: f64 = 1_000_000.0;

/// Prices of a million tokens of a model, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// Price of input that is neither read from the provider's cache nor written to it.
    pub input: f64,
    /// Price of output.
    pub output: f64,
    /// Price of input that is read from the cache; `None` for the provider's usual share of `input`.
    pub cached: Option<f64>,
    /// Price of input that is written to the cache; `None` for the provider's usual share of `input`.
    pub written: Option<f64>,
}

/// Prices by pattern of the model's name: `*` stands for any characters, in any case.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct PricesConfig(BTreeMap<String, PriceConfig>);

impl PricesConfig {
    /// Returns the price of a model by the pattern that says most of its name: the name itself, else the one with the most
    /// letters. `None` if no pattern matches.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<PriceConfig> {
        let matching = self.0.iter().rev().filter(|(text, _)| Pattern::new(text).matches(model));
        let letters = |text: &str| text.chars().filter(|letter| *letter != '*').count();
        let closest = matching.max_by_key(|(text, _)| (!text.contains('*'), letters(text)));
        closest.map(|(_, price)| *price)
    }

    /// Returns what is wrong with the prices, with the key that it is wrong with.
    pub(super) fn problem(&self) -> Option<String> {
        self.0.iter().find_map(|(text, price)| {
            if text.trim().is_empty() {
                return Some("llm.prices has a key without a model's name".to_owned());
            }
            let problem = price.problem()?;
            Some(format!("llm.prices.{text:?}.{problem}"))
        })
    }
}

impl PriceConfig {
    fn problem(&self) -> Option<String> {
        let Self { input, output, cached, written } = *self;
        let all = [
            ("input", Some(input)),
            ("output", Some(output)),
            ("cached", cached),
            ("written", written),
        ];
        let is_price = |price: f64| price > 0.0 && price <= PRICE_MAX;
        let wrong = all.into_iter().find_map(|(name, price)| {
            let price = price.filter(|price| !is_price(*price))?;
            Some(format!(
                "{name} is {price}: it must be more than 0 and at most {PRICE_MAX}, in US dollars of a million tokens"
            ))
        });
        let is_dear = cached.is_some_and(|cached| cached > input);
        wrong.or_else(|| {
            is_dear.then(|| "cached is more than input: what a cache serves costs less".to_owned())
        })
    }
}
