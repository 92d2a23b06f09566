//! Catalog that conversations are played over, and Route's choice from it.

use std::collections::{BTreeSet, HashMap, HashSet};

use toolgate_config::RouterConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::state::{AgentState, PriorCall};
use toolgate_llm::price::PromptPrices;
use toolgate_llm::render::Tool;
use toolgate_llm::strategy::Listing;
use toolgate_routing::gate::handle::ActiveSet;
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::packs::Attached;
use toolgate_routing::router::allow::Allowed;
use toolgate_routing::router::intent;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::router::ranking::pool;
use toolgate_routing::router::ranking::rank::{Candidate, Embedded};
use toolgate_routing::router::selection::choose::{Choice, Chosen};
use toolgate_routing::shard::snapshot::{Known, Snapshot};
use toolgate_store::StoredCatalog;

use super::turns::Turn;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::ServerNames;
use crate::eval::{self, LabelledQuery};

/// Number of candidates that a set is chosen from, the same as Route ranks, whatever its `top_k`.
const CANDIDATES: usize = 100;

/// Catalog with all that Route needs.
pub(super) struct Scene<'a> {
    /// Indexed catalog.
    pub snapshot: Snapshot,
    embeddings: &'a Embeddings,
    background: Vec<Vec<f32>>,
    options: Options,
    slots: HashMap<String, u32>,
}

/// Parts that a catalog is indexed with.
pub(super) struct Stage<'a, 'e> {
    /// Embeddings of all summaries and turns.
    pub embeddings: &'e Embeddings,
    /// Packs of the servers.
    pub packs: &'a Attached,
    /// Names of the servers in the catalog's file.
    pub names: &'a ServerNames,
    /// Length of an embedding.
    pub dimensions: usize,
    /// Router settings.
    pub router: &'a RouterConfig,
}

/// Catalogs that conversations are played over.
pub(super) struct Scenes<'a> {
    /// Whole catalog.
    pub whole: Scene<'a>,
    /// Parts that the servers of one conversation are indexed with; `None` if all conversations are played over the whole catalog.
    pub own: Option<(&'a Stage<'a, 'a>, &'a StoredCatalog)>,
}

impl Scenes<'_> {
    /// Calls `play` with the scene of a conversation.
    ///
    /// # Errors
    /// Those of `play`, and an internal error of the index.
    pub(super) fn with<T>(
        &self,
        conversation: &[Turn<'_>],
        play: impl FnOnce(&Scene<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some((stage, catalog)) = self.own else { return play(&self.whole) };
        let tools = |turn: &Turn<'_>| {
            let calls = turn.calls.iter().map(|call| call.tool.clone());
            calls.chain(turn.query.relevant.iter().cloned()).collect::<Vec<_>>()
        };
        let ids: Vec<String> = conversation.iter().flat_map(tools).collect();
        let servers = ids.iter().filter_map(|id| id.split_once('/'));
        let servers: HashSet<&str> = servers.map(|(server, _)| server).collect();
        let is_own = |server: &ServerName| servers.contains(stage.names.in_file(server));
        let mut own = catalog.clone();
        own.servers.retain(|server| is_own(&server.record.name));
        own.tools.retain(|tool| is_own(&tool.record.server));
        play(&stage.scene(own)?)
    }
}

impl<'e> Stage<'_, 'e> {
    /// Indexes a catalog.
    ///
    /// # Errors
    /// An internal error of the index.
    pub(super) fn scene(&self, catalog: StoredCatalog) -> Result<Scene<'e>, Error> {
        let known = Known { embeddings: self.embeddings.vectors(), packs: self.packs };
        let snapshot = Snapshot::build_with(catalog, known, self.dimensions)?;
        let id = |slot: u32| {
            let id = &snapshot.tool(slot).id;
            format!("{}/{}", self.names.in_file(&id.server), id.name.as_str())
        };
        let slots = (0..).take(snapshot.tools.len()).map(|slot| (id(slot), slot)).collect();
        let background = self.embeddings.background();
        let options = eval::options(self.router);
        Ok(Scene { snapshot, embeddings: self.embeddings, background, options, slots })
    }
}

/// Turn with its ranking, which is the same whatever the method is.
pub(super) struct Ranked<'a> {
    /// The turn.
    pub turn: &'a Turn<'a>,
    query: RouteQuery,
    vectors: Vec<Vec<f32>>,
    candidates: Vec<Candidate>,
    level: Level,
}

/// State of the conversation that a choice goes by, beside the message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past<'a> {
    /// Set of the turn before; `None` for a set that is chosen anew.
    pub previous: Option<&'a ActiveSet>,
    /// Names of tools that were called or found.
    pub discovered: &'a [String],
    /// Tokens that a change of the set would have written again; `None` if the cache is not counted.
    pub history_tokens: Option<u32>,
    /// Tokens of the definitions that every request has beside the set.
    pub beside_tokens: u32,
    /// Prices of the prompt's tokens.
    pub prices: PromptPrices,
}

impl Scene<'_> {
    /// Returns the slot of a tool, named as `server/tool` or as the model sees it.
    pub(super) fn slot(&self, id: &str) -> Option<u32> {
        self.slots.get(id).copied().or_else(|| self.snapshot.names.model_name(id))
    }

    /// Returns the name that the model sees.
    pub(super) fn name(&self, slot: u32) -> &str {
        &self.snapshot.tool(slot).model_name
    }

    /// Returns the tokens of all tools' definitions.
    pub(super) fn catalog_tokens(&self) -> u32 {
        self.snapshot.tools.iter().map(|tool| tool.schema_tokens).sum()
    }

    /// Returns a tool to render.
    pub(super) fn tool(&self, slot: u32) -> Tool<'_> {
        let tool = self.snapshot.tool(slot);
        Tool {
            name: &tool.model_name,
            description: tool.definition.description(),
            input_schema_json: tool.definition.sent_schema(),
            output_schema_json: tool.definition.output_schema(),
            annotations_json: tool.definition.annotations(),
            signature: "",
        }
    }

    /// Returns the slots of all tools.
    pub(super) fn all(&self) -> Vec<u32> {
        (0..).take(self.snapshot.tools.len()).collect()
    }

    /// Returns a warning for each label that names no tool.
    pub(super) fn unknown<'q>(
        &self,
        queries: impl Iterator<Item = &'q LabelledQuery>,
    ) -> Vec<String> {
        let labels: BTreeSet<&String> = queries.flat_map(|query| &query.relevant).collect();
        let unknown = labels.into_iter().filter(|label| self.slot(label).is_none());
        unknown.map(|label| format!("{label}: no such tool; it counts as missed")).collect()
    }

    /// Ranks the tools for a turn.
    ///
    /// # Errors
    /// An internal error of the index.
    pub(super) fn rank<'t>(&self, turn: &'t Turn<'t>) -> Result<Ranked<'t>, Error> {
        let call = |call: &PriorCall| {
            let tool = self.slot(&call.tool).map_or(&*call.tool, |slot| self.name(slot));
            PriorCall { tool: tool.to_owned(), ..call.clone() }
        };
        let calls = turn.state.calls.iter().map(call).collect();
        let state = AgentState { calls, ..turn.state.clone() };
        let options = self.options.clone();
        let query = RouteQuery { state, options, ..RouteQuery::of(turn.intents.clone()) };
        let texts = intent::texts(&query.intents);
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let allowed = self.allowed(&query)?;
        let level = Level::of(
            &self.snapshot,
            &query.intents,
            &query.options,
            &self.background,
            allowed.slots.as_ref(),
        );
        let embedded = Embedded { level, ..Embedded::new(&query.intents, &vectors) };
        let candidates = pool::candidates(&self.snapshot, &embedded, &query, &allowed, CANDIDATES)?;
        Ok(Ranked { turn, query, vectors, candidates, level })
    }

    /// Chooses the set of a turn.
    ///
    /// # Errors
    /// An internal error of the index.
    pub(super) fn choose(&self, ranked: &Ranked<'_>, past: Past<'_>) -> Result<Vec<Chosen>, Error> {
        let mut query = ranked.query.clone();
        query.options.history_tokens = past.history_tokens;
        query.options.prices = past.prices;
        query.options.beside_tokens = past.beside_tokens;
        query.options.listing_tokens = Listing::TOKENS;
        query.state.discovered = past.discovered.to_vec();
        let allowed = self.allowed(&query)?;
        let level = ranked.level;
        let embedded = Embedded { level, ..Embedded::new(&query.intents, &ranked.vectors) };
        let choice = Choice::new(&self.snapshot, &allowed, &embedded, &query, level);
        Ok(choice.make(past.previous, &ranked.candidates, true).active)
    }

    fn allowed(&self, query: &RouteQuery) -> Result<Allowed, Error> {
        let visibilities = Visibilities::of(&self.snapshot, &query.state);
        Allowed::new(&self.snapshot, visibilities, &query.options, &[])
    }
}
