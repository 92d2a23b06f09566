//! How much of a conversation's prompts a provider's cache can serve, by the way tools are put into them. The
//! queries are the turns, each with one call; halfway, one more tool is registered. Nothing is sent
//! anywhere: a cache serves what a prompt has in common with the beginning of the one before it, and parts are
//! tokenised apart.

mod prompt;

use crate::error::Error;
use crate::gate::handle::{ActiveSet, ShownTool};
use crate::gate::standing::Standings;
use crate::packs::Attached;
use crate::router::allow::Allowed;
use crate::router::choose::{Choice, Chosen};
use crate::router::intent::{self, Intent};
use crate::router::level::Level;
use crate::router::query::{Options, RouteQuery};
use crate::router::rank::{Candidate, Embedded};
use crate::shard::snapshot::Snapshot;
use crate::store::StoredCatalog;
use crate::tokens;

use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;

use prompt::{Part, Prompts};

/// What a turn's call, its result and the model's answer come to, in tokens. An assumption: queries come
/// without answers.
pub const ANSWER_TOKENS: u32 = 300;

/// One way to put tools into prompts, over a whole conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// Tokens of all prompts.
    pub tokens: u64,
    /// Those that the prompt before begins with.
    pub cached: u64,
}

impl Layout {
    /// The share of all tokens that a cache serves.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        self.cached as f64 / (self.tokens as f64).max(1.0)
    }

    /// Tokens at the price of uncached ones: a cached one costs a tenth.
    #[must_use]
    pub fn priced(&self) -> f64 {
        (self.tokens - self.cached) as f64 + self.cached as f64 / 10.0
    }
}

/// A conversation in every layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Its turns.
    pub turns: usize,
    /// The layouts, the most naive first.
    pub layouts: Vec<Layout>,
}

impl Conversation {
    /// Plays `queries`, each turn routed with `options`.
    ///
    /// # Errors
    /// A defect of the index.
    pub fn play(
        (catalog, packs): (&StoredCatalog, &Attached),
        embeddings: &Embeddings,
        dimensions: usize,
        queries: &[LabelledQuery],
        options: &Options,
    ) -> Result<Self, Error> {
        let known = (embeddings.vectors(), packs);
        let after = Snapshot::build_with(catalog.clone(), known, dimensions)?;
        let before = Snapshot::build_with(without_one(catalog), known, dimensions)?;
        let mut stage = Stage::new(&before, options);
        for (turn, query) in queries.iter().enumerate() {
            let snapshot = if turn < queries.len() / 2 { &before } else { &after };
            stage.turn(snapshot, turn, query, embeddings)?;
        }
        let layouts = vec![
            stage.all.total("all schemas first"),
            stage.ranked.total("best schemas first, anew each turn"),
            stage.two_phase.total("summaries first, schemas before the message"),
            stage.ours.total("summaries first, schemas appended where they were needed"),
        ];
        Ok(Self { turns: queries.len(), layouts })
    }
}

/// The catalog before the tool in its middle was registered.
fn without_one(catalog: &StoredCatalog) -> StoredCatalog {
    let mut catalog = catalog.clone();
    if catalog.tools.len() > 1 {
        catalog.tools.remove(catalog.tools.len() / 2);
    }
    catalog
}

/// The prompts so far in every layout.
struct Stage {
    all: Prompts,
    ranked: Prompts,
    two_phase: Prompts,
    ours: Prompts,
    /// Messages of the turns before.
    history: Vec<Part>,
    /// The same with what was appended between them.
    with_schemas: Vec<Part>,
    /// The pool as the conversation began with it.
    pool: Vec<Part>,
    /// Tools whose summaries our prompt has.
    announced: usize,
    shown: Option<ActiveSet>,
    options: Options,
}

impl Stage {
    fn new(snapshot: &Snapshot, options: &Options) -> Self {
        Self {
            options: options.clone(),
            all: Prompts::default(),
            ranked: Prompts::default(),
            two_phase: Prompts::default(),
            ours: Prompts::default(),
            history: Vec::new(),
            with_schemas: Vec::new(),
            pool: pool(snapshot),
            announced: snapshot.tools.len(),
            shown: None,
        }
    }

    fn turn(
        &mut self,
        snapshot: &Snapshot,
        turn: usize,
        query: &LabelledQuery,
        embeddings: &Embeddings,
    ) -> Result<(), Error> {
        let intents = vec![Intent::new(query.text.clone(), 1.0)];
        let route = RouteQuery { options: self.options.clone(), ..RouteQuery::of(intents) };
        let texts = intent::texts(&route.intents);
        let vectors = texts.iter().filter_map(|text| embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let embedded = Embedded::new(&route.intents, &vectors);
        let candidates = embedded.rank(snapshot, route.options.top_k, None)?;
        let message = Part::message(turn, tokens::count(&query.text));
        let best: Vec<Part> = passing(&candidates, &route)
            .map(|candidate| Part::schema(snapshot.tool(candidate.slot)))
            .collect();
        let all: Vec<Part> = snapshot.tools.iter().map(Part::schema).collect();

        self.all.push([&all, &self.history, &[message]]);
        self.ranked.push([&best, &self.history, &[message]]);
        self.two_phase.push([&pool(snapshot), &self.history, &best, &[message]]);
        let added = self.append(snapshot, &route, &embedded, &candidates)?;
        self.ours.push([&self.pool, &self.with_schemas, &added, &[message]]);

        let answer = Part::answer(turn, ANSWER_TOKENS);
        self.history.extend([message, answer]);
        self.with_schemas.extend(added.into_iter().chain([message, answer]));
        Ok(())
    }

    /// What our prompt gets this turn: summaries of new tools, and schemas that it does not have yet.
    fn append(
        &mut self,
        snapshot: &Snapshot,
        route: &RouteQuery,
        embedded: &Embedded<'_>,
        candidates: &[Candidate],
    ) -> Result<Vec<Part>, Error> {
        let mut added = Vec::new();
        if snapshot.tools.len() > self.announced {
            let known = &self.pool;
            let lines = pool(snapshot);
            added.extend(lines.into_iter().filter(|line| !known.contains(line)));
            self.announced = snapshot.tools.len();
        }
        let standings = Standings::of(snapshot, &route.state);
        let allowed = Allowed::new(snapshot, standings, &route.options, &[])?;
        let choice =
            Choice::new(snapshot, &allowed, embedded, route, Level(route.options.threshold));
        let outcome = choice.make(self.shown.as_ref(), &[], candidates, true);
        let new = outcome.active.iter().filter(|chosen| chosen.newly_promoted);
        added.extend(new.map(|chosen| Part::schema(snapshot.tool(chosen.slot))));
        self.shown = Some(shown(snapshot, &outcome.active));
        Ok(added)
    }
}

/// The candidates that a turn without a past would show.
fn passing<'a>(
    candidates: &'a [Candidate],
    route: &'a RouteQuery,
) -> impl Iterator<Item = &'a Candidate> {
    let passes = |candidate: &&Candidate| candidate.overlap >= route.options.threshold;
    candidates.iter().filter(passes).take(route.options.top_k)
}

fn pool(snapshot: &Snapshot) -> Vec<Part> {
    snapshot.tools.iter().map(Part::summary).collect()
}

fn shown(snapshot: &Snapshot, active: &[Chosen]) -> ActiveSet {
    let tool = |chosen: &Chosen| {
        let tool = snapshot.tool(chosen.slot);
        ShownTool::new(tool.key, &tool.hash)
    };
    let tools = active.iter().map(tool).collect();
    ActiveSet { revision: snapshot.revision, expires: u64::MAX, tools, imprint: None }
}
