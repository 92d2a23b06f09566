//! Answers to queries, as Route gives them in a conversation's first turn: the router's own ranking without any cut,
//! and the active set that its own cut makes of it.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;
use super::stock::ServerNames;
use toolgate_core::error::Error;
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::router::allow::Allowed;
use toolgate_routing::router::answers::account;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::query::{Detail, Options, RouteQuery};
use toolgate_routing::router::ranking::blend::Blend;
use toolgate_routing::router::ranking::cut::Cut;
use toolgate_routing::router::ranking::fit::Fit;
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::router::ranking::pool;
use toolgate_routing::router::ranking::rank::{Candidate, Embedded, FoundBy, Parts, Recent};
use toolgate_routing::router::ranking::recall::Recall;
use toolgate_routing::router::selection::choose::{Choice, Chosen};
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_routing::shard::{Hit, Reach};

/// Largest number of tools in one ranking. A smaller catalog gives fewer.
pub const RANKED: usize = 50;

/// Number of candidates that a set is chosen from, the same as Route ranks, whatever its `top_k`.
const CANDIDATES: usize = 100;

/// Ranking of one query.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ranked {
    /// Tools as `server/tool`, best first.
    pub ranked: Vec<String>,
    /// Scores of the tools, comparable within one ranking only.
    pub scores: Vec<f32>,
    /// Overlap of the first tool, a cosine; 0 if there is none.
    pub top: f32,
}

/// Active set of one query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Tools as `server/tool`.
    pub tools: Vec<String>,
    /// Tokens of the tools as the model sees them.
    pub tokens: u64,
}

/// Answer to one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Ranking before any cut.
    pub ranked: Ranked,
    /// Best overlap of any tool, a cosine; 0 if there is none.
    pub overlap: f32,
    /// Tools that would be sent.
    pub set: Set,
    /// Fit of the first tool, as Route reports it.
    pub fit: Fit,
    /// Time to rank and choose, without the time to embed the query.
    pub time: Duration,
}

/// Settings of a ranking.
#[derive(Clone, Copy)]
pub struct Ranking<'a> {
    /// Embeddings of summaries and queries.
    pub embeddings: &'a Embeddings,
    /// Server names that answers use.
    pub names: &'a ServerNames,
    /// Options of Route, such as the threshold and `top_k`.
    pub options: &'a Options,
    /// True if the clauses of a query are ranked as well as the whole.
    pub clauses: bool,
    /// Way to rank.
    pub way: Way,
    /// Memory of calls, and the weight that replaces the product's.
    pub memory: Option<(&'a Recall, f32)>,
}

/// Way to rank queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Ranking of Route.
    Router,
    /// Ranking of Route with a query's clauses as intents of the same turn. Each intent gets its best tool before any
    /// intent gets its second.
    Clauses,
    /// Ranking of Route with each query as a whole.
    Undivided,
    /// Ranking of Route without an encoder: by words (BM25) and their synonyms.
    WordsAlone,
    /// Ranking by the words themselves only.
    SharedWordsAlone,
    /// Ranking by overlap only, with the threshold applied to each tool (Tool Attention's rule).
    OverlapAlone,
}

impl Ranking<'_> {
    /// Answers every query.
    ///
    /// # Errors
    /// An internal error of the index.
    pub fn answer(
        &self,
        snapshot: &Snapshot,
        queries: &[&LabelledQuery],
    ) -> Result<Vec<Answer>, Error> {
        let background = self.embeddings.background();
        let answer = |query: &&LabelledQuery| self.answer_one(snapshot, &query.text, &background);
        queries.iter().map(answer).collect()
    }

    pub(super) fn answer_one(
        &self,
        snapshot: &Snapshot,
        query: &str,
        background: &[Vec<f32>],
    ) -> Result<Answer, Error> {
        let route = self.route(query);
        let vectors = self.vectors(query, &route);
        self.decide(snapshot, &route, &vectors, background)
    }

    /// Answers a turn with these intents and calls.
    pub(super) fn answer_route(
        &self,
        snapshot: &Snapshot,
        route: &RouteQuery,
        background: &[Vec<f32>],
    ) -> Result<Answer, Error> {
        let vectors = self.vectors("", route);
        self.decide(snapshot, route, &vectors, background)
    }

    fn decide(
        &self,
        snapshot: &Snapshot,
        route: &RouteQuery,
        vectors: &[Vec<f32>],
        background: &[Vec<f32>],
    ) -> Result<Answer, Error> {
        let blend = self.blend();
        let recall = self.memory.map(|(recall, _)| recall);

        let began = Instant::now();
        let visibilities = Visibilities::of(snapshot, &route.state);
        let allowed = Allowed::new(snapshot, visibilities, &route.options, &[])?;
        let level =
            Level::of(snapshot, &route.intents, &route.options, background, allowed.slots.as_ref());
        let ranks = Embedded::new(&route.intents, vectors);
        let reach = match self.way {
            Way::SharedWordsAlone => Reach::Words,
            _ => ranks.reach,
        };
        let embedded = Embedded { blend, recall, level, reach, ..ranks };
        let candidates = match self.way {
            Way::OverlapAlone => by_overlap(snapshot, vectors)?,
            _ => pool::candidates(snapshot, &embedded, route, &allowed, CANDIDATES)?,
        };
        let cut = Cut::of(snapshot, &embedded, &route.options, level, &candidates);
        let fit = Fit::of(&candidates, |one| cut.passes(one));
        let choice = Choice::new(snapshot, &allowed, &embedded, route, level);
        let active = choice.make(None, &candidates, true).active;
        let time = began.elapsed();

        let overlap = candidates.iter().map(|c| c.parts.nearest).reduce(f32::max).unwrap_or(0.0);
        let set = self.set(snapshot, &active);
        Ok(Answer { ranked: self.ranked(snapshot, candidates), overlap, set, fit, time })
    }

    fn route(&self, query: &str) -> RouteQuery {
        let mut options = self.options.clone();
        if self.way == Way::OverlapAlone {
            options.ratio = None;
        }
        let whole = Intent::new(query.to_owned(), 1.0);
        let undivided = |text: &String| Intent::undivided(text.clone(), 1.0);
        let intents = match self.way {
            Way::Router if self.clauses => vec![whole],
            Way::Clauses => {
                [&whole.text].into_iter().chain(whole.clauses()).map(undivided).collect()
            }
            _ => vec![undivided(&whole.text)],
        };
        RouteQuery { options, ..RouteQuery::of(intents) }
    }

    /// Returns the embeddings of a route's texts. [`Way::OverlapAlone`] has only that of the unchanged query, and
    /// those by words have none.
    fn vectors(&self, query: &str, route: &RouteQuery) -> Vec<Vec<f32>> {
        let texts = match self.way {
            Way::WordsAlone | Way::SharedWordsAlone => Vec::new(),
            Way::OverlapAlone => vec![query.to_owned()],
            _ => intent::texts(&route.intents),
        };
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        vectors.map(<[f32]>::to_vec).collect()
    }

    fn blend(&self) -> Blend {
        let product = Blend::default();
        let memory = self.memory.map_or(product.memory, |(_, weight)| weight);
        Blend { clauses: self.way == Way::Router && self.clauses, memory, ..product }
    }

    fn ranked(&self, snapshot: &Snapshot, mut candidates: Vec<Candidate>) -> Ranked {
        let top = candidates.first().map_or(0.0, |first| first.overlap);
        if self.way == Way::Clauses {
            // The sort is stable, like the router's choice.
            candidates.sort_by_key(|candidate| !candidate.leads);
        }
        candidates.truncate(RANKED);
        let ranked = candidates.iter().map(|candidate| self.id(snapshot, candidate.slot)).collect();
        let scores = candidates.iter().map(|candidate| candidate.score).collect();
        Ranked { ranked, scores, top }
    }

    fn set(&self, snapshot: &Snapshot, active: &[Chosen]) -> Set {
        let tokens =
            |chosen: &Chosen| u64::from(account::active(snapshot, *chosen, Detail::Schemas).tokens);
        Set {
            tools: active.iter().map(|chosen| self.id(snapshot, chosen.slot)).collect(),
            tokens: active.iter().map(tokens).sum(),
        }
    }

    fn id(&self, snapshot: &Snapshot, slot: u32) -> String {
        let id = &snapshot.tool(slot).id;
        format!("{}/{}", self.names.in_file(&id.server), id.name.as_str())
    }
}

/// Returns the candidates by overlap with the only intent.
fn by_overlap(snapshot: &Snapshot, vectors: &[Vec<f32>]) -> Result<Vec<Candidate>, Error> {
    let (Some(index), Some(vector)) = (snapshot.vectors(), vectors.first()) else {
        return Ok(Vec::new());
    };
    let hits = index.search(vector, CANDIDATES, None).map_err(Error::internal)?;
    let candidate = |(place, hit): (usize, &Hit)| Candidate {
        slot: hit.slot,
        overlap: hit.overlap,
        score: hit.overlap,
        found_by: FoundBy::Overlap,
        parts: Parts { nearest: hit.overlap, ..Parts::default() },
        leads: place == 0,
        recent: Recent::default(),
        from_context: false,
        is_reserved: false,
    };
    Ok(hits.iter().enumerate().map(candidate).collect())
}
