//! Answers each query as Route would in a conversation's first turn: the router's own ranking, with nothing
//! cut, and the active set that its own cut makes of it.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;
use super::stock::ServerNames;
use toolgate_core::error::Error;
use toolgate_routing::gate::standing::Standings;
use toolgate_routing::router::account;
use toolgate_routing::router::allow::Allowed;
use toolgate_routing::router::blend::Blend;
use toolgate_routing::router::choose::{Choice, Chosen};
use toolgate_routing::router::cut::Cut;
use toolgate_routing::router::fit::Fit;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::level::Level;
use toolgate_routing::router::query::{Detail, Options, RouteQuery};
use toolgate_routing::router::rank::{Candidate, Embedded, FoundBy, Parts, Recent};
use toolgate_routing::router::recall::Recall;
use toolgate_routing::shard::Hit;
use toolgate_routing::shard::snapshot::Snapshot;

/// Tools of one ranking; a smaller catalog gives fewer.
pub const RANKED: usize = 50;

/// Candidates that a set is chosen from: as many as Route ranks, whatever its `top_k`.
const CANDIDATES: usize = 100;

/// One query's ranking.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ranked {
    /// The tools as `server/tool`, best first.
    pub ranked: Vec<String>,
    /// What each was ranked by; comparable within one ranking only.
    pub scores: Vec<f32>,
    /// The overlap of the first; 0 when there is none.
    pub top: f32,
}

/// One query's active set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// The tools as `server/tool`.
    pub tools: Vec<String>,
    /// What the model sees of them costs.
    pub tokens: u64,
}

/// What a query is answered with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The ranking.
    pub ranked: Ranked,
    /// The best overlap of any tool; 0 when there is none.
    pub overlap: f32,
    /// The active set.
    pub set: Set,
    /// What Route says of how well the first fits.
    pub fit: Fit,
    /// How long ranking and choosing took, once the query was embedded.
    pub time: Duration,
}

/// How queries are ranked.
#[derive(Clone, Copy)]
pub struct Ranking<'a> {
    /// Of summaries and queries.
    pub embeddings: &'a Embeddings,
    /// The names to answer with.
    pub names: &'a ServerNames,
    /// Where rankings are cut.
    pub options: &'a Options,
    /// Whether the clauses of a query count.
    pub clauses: bool,
    /// By what.
    pub way: Way,
    /// What is remembered of calls, and the weight of it instead of the product's.
    pub memory: Option<(&'a Recall, f32)>,
}

/// By what queries are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As Route ranks them.
    Router,
    /// The same, with a query's clauses as intents of the same turn, each of which gets its best tool before
    /// any gets its second.
    Clauses,
    /// The same, with each query as a whole.
    Undivided,
    /// By words and nothing else (BM25).
    WordsAlone,
    /// By overlap and nothing else, with the threshold for each tool (Tool Attention's rule).
    OverlapAlone,
}

impl Ranking<'_> {
    /// Answers every query.
    ///
    /// # Errors
    /// A defect of the index.
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
        let blend = self.blend();
        let recall = self.memory.map(|(recall, _)| recall);

        let began = Instant::now();
        let standings = Standings::of(snapshot, &route.state);
        let allowed = Allowed::new(snapshot, standings, &route.options, &[])?;
        let asked = (&*route.intents, &route.options);
        let level = Level::of(snapshot, asked, background, allowed.slots.as_ref());
        let ranks = Embedded::new(&route.intents, &vectors);
        let embedded = Embedded { blend, recall, level, ..ranks };
        let candidates = match self.way {
            Way::OverlapAlone => by_overlap(snapshot, &vectors)?,
            _ => embedded.rank(snapshot, CANDIDATES, allowed.slots.as_ref())?,
        };
        let cut = Cut::of(snapshot, (&embedded, &route.options), level, &candidates);
        let fit = Fit::of(&candidates, |one| cut.passes(one));
        let choice = Choice::new(snapshot, &allowed, &embedded, &route, level);
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

    /// The embeddings of a route's texts; of the query as it stands for the rule that knows no other, and none
    /// where words alone decide.
    fn vectors(&self, query: &str, route: &RouteQuery) -> Vec<Vec<f32>> {
        let texts = match self.way {
            Way::WordsAlone => Vec::new(),
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
            // Stable, as the router's choice is.
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

/// The candidates of the one intent that there is, by overlap.
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
    };
    Ok(hits.iter().enumerate().map(candidate).collect())
}
