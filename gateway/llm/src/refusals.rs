//! Models whose provider refused what the proxy wrote: for a while their requests are written in a simpler way, or sent as
//! they come.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_llm::strategy::{Api, Strategy};

use crate::bounded::gives_way;

/// Time for which a model is remembered.
const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);

/// Most models that are remembered, of all tenants together.
const REFUSALS_MAX: usize = 256;

/// Most bytes of a name that models are told apart by.
const MODEL_MAX: usize = 256;

/// Model as one tenant calls it: another's requests may be refused for what is in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CalledModel {
    pub(crate) tenant: Arc<str>,
    pub(crate) api: &'static str,
    pub(crate) model: String,
}

/// Refusals of the last hour.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<(CalledModel, bool), Instant>>);

impl CalledModel {
    pub(crate) fn new(tenant: &Arc<str>, api: Api, model: &str) -> Self {
        let model = model[..model.floor_char_boundary(MODEL_MAX)].to_owned();
        Self { tenant: Arc::clone(tenant), api: api.name(), model }
    }
}

impl Refusals {
    /// Notes that the provider refused a request that was written by a strategy.
    pub(crate) fn note(&self, model: &CalledModel, strategy: Strategy) {
        let mut refusals = self.0.lock();
        refusals.retain(|_, since| since.elapsed() < REFUSED_FOR);
        if refusals.len() >= REFUSALS_MAX {
            let held = refusals.keys().map(|(of, _)| (&of.tenant, 1));
            let victim = gives_way(held, &model.tenant, 1);
            let of_victim = refusals.iter().filter(|((of, _), _)| of.tenant == victim);
            let oldest = of_victim.min_by_key(|(_, since)| **since).map(|(key, _)| key.clone());
            // A tenant without any can't take a place of those who have no more.
            let Some(oldest) = oldest else { return };
            refusals.remove(&oldest);
        }
        refusals.insert((model.clone(), strategy == Strategy::Native), Instant::now());
    }

    /// Returns true if requests of the model are sent as they come.
    pub(crate) fn has(&self, model: &CalledModel) -> bool {
        self.knows(model, false)
    }

    /// Returns true if the model's requests have no tools added amid the conversation.
    pub(crate) fn has_native(&self, model: &CalledModel) -> bool {
        self.knows(model, true)
    }

    fn knows(&self, model: &CalledModel, is_native: bool) -> bool {
        let refusals = self.0.lock();
        let since = refusals.get(&(model.clone(), is_native));
        since.is_some_and(|since| since.elapsed() < REFUSED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(tenant: &str, name: &str) -> CalledModel {
        CalledModel::new(&Arc::from(tenant), Api::Anthropic, name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_for_its_tenant_its_model_and_an_hour() {
        let refusals = Refusals::default();
        refusals.note(&model("a", "m"), Strategy::Envelope);
        refusals.note(&model("a", "n"), Strategy::Native);
        assert!(refusals.has(&model("a", "m")) && !refusals.has_native(&model("a", "m")));
        assert!(!refusals.has(&model("a", "n")) && refusals.has_native(&model("a", "n")));
        assert!(!refusals.has(&model("b", "m")));
        tokio::time::advance(REFUSED_FOR).await;
        assert!(!refusals.has(&model("a", "m")));
    }

    #[test]
    fn names_of_any_length_take_little() {
        let long = model("a", &"é".repeat(100_000));
        assert!(long.model.len() <= MODEL_MAX, "{}", long.model.len());
    }

    #[tokio::test]
    async fn one_tenant_takes_no_place_of_another() {
        let refusals = Refusals::default();
        refusals.note(&model("b", "m"), Strategy::Envelope);
        for number in 0..2 * REFUSALS_MAX {
            refusals.note(&model("a", &number.to_string()), Strategy::Envelope);
        }
        assert!(refusals.has(&model("b", "m")));
        assert_eq!(refusals.0.lock().len(), REFUSALS_MAX);
    }
}
