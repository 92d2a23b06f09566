//! Conversations as they are sent by default, for other benchmarks: Route chooses with its defaults, and `auto` decides
//! what the requests carry.

use toolgate_config::RouterConfig;
use toolgate_core::error::Error;
use toolgate_routing::packs::Attached;
use toolgate_store::StoredCatalog;

use super::pieces::Counter;
use super::play::Play;
use super::scene::{Scene, Stage};
use super::turns::Turn;
use super::{Method, Provider};
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::ServerNames;

/// Catalog whose conversations are sent by default.
pub(crate) struct Defaults<'a> {
    scene: Scene<'a>,
    counter: Counter,
}

/// Turn that was sent: the tool part of its first request, and the price of all of its requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentTurn {
    /// Tokens before all messages: the search with its listing, and definitions that stay there.
    pub first: u32,
    /// Tokens amid the messages: this turn's definitions, and those of earlier turns, which stay.
    pub amid: u32,
    /// Names of the tools that are defined.
    pub tools: Vec<String>,
    /// Price in tokens of uncached input.
    pub price: f64,
}

impl<'a> Defaults<'a> {
    /// Indexes a catalog. `embeddings` has its summaries and the intents of all turns.
    ///
    /// # Errors
    /// An internal error of the index.
    pub(crate) fn new(
        catalog: StoredCatalog,
        embeddings: &'a Embeddings,
        packs: &Attached,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let names = ServerNames::default();
        let router = RouterConfig::default();
        let stage = Stage { embeddings, packs, names: &names, dimensions, router: &router };
        Ok(Self { scene: stage.scene(catalog)?, counter: Counter::default() })
    }

    /// Plays a conversation whose turns name tools as the model sees them.
    ///
    /// # Errors
    /// An internal error of the index, or a definition that can't be rendered.
    pub(crate) fn play(&self, turns: &[Turn<'_>]) -> Result<Vec<SentTurn>, Error> {
        let provider = Provider::PRICED;
        let mut play = Play::new(&self.scene, &self.counter, provider, Method::AUTO, &[0])?;
        let mut price = 0.0;
        let mut sent = Vec::new();
        for turn in turns {
            let (opening, totals) = play.turn(&self.scene.rank(turn)?)?;
            let before = price;
            price = totals.first().map_or(before, |totals| totals.price);
            let name = |slot: &u32| self.scene.name(*slot).to_owned();
            sent.push(SentTurn {
                first: opening.first,
                amid: opening.amid,
                tools: opening.shown.iter().map(name).collect(),
                price: price - before,
            });
        }
        Ok(sent)
    }
}
