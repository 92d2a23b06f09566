//! Ranks each query by the router's own ranking, with nothing cut: no threshold, no cap, no state.

use serde::Serialize;

use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;
use super::stock::ServerNames;
use crate::error::Error;
use crate::router::blend::Blend;
use crate::router::intent::{self, Intent};
use crate::router::rank::Embedded;
use crate::shard::snapshot::Snapshot;

/// Tools of one ranking; a smaller catalog gives fewer.
pub const RANKED: usize = 50;

/// One query's ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The tools as `server/tool`, best first.
    pub ranked: Vec<String>,
    /// The overlap of the first; 0 when there is none.
    pub top: f32,
}

/// How queries are ranked.
#[derive(Clone, Copy)]
pub struct Ranking<'a> {
    /// Of summaries and queries.
    pub embeddings: &'a Embeddings,
    /// The names to answer with.
    pub names: &'a ServerNames,
    /// By what.
    pub way: Way,
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
    /// By overlap and nothing else (Tool Attention's rule).
    OverlapAlone,
}

impl Ranking<'_> {
    /// Ranks every query.
    ///
    /// # Errors
    /// A defect of the index.
    pub fn rank(
        &self,
        snapshot: &Snapshot,
        queries: &[LabelledQuery],
    ) -> Result<Vec<Ranked>, Error> {
        queries.iter().map(|query| self.rank_one(snapshot, &query.text)).collect()
    }

    fn rank_one(&self, snapshot: &Snapshot, query: &str) -> Result<Ranked, Error> {
        if self.way == Way::OverlapAlone {
            return self.by_overlap(snapshot, query);
        }
        let whole = Intent::new(query.to_owned(), 1.0);
        let undivided = |text: &String| Intent::undivided(text.clone(), 1.0);
        let intents: Vec<Intent> = match self.way {
            Way::Clauses => {
                [&whole.text].into_iter().chain(whole.clauses()).map(undivided).collect()
            }
            _ => vec![whole],
        };
        let texts = intent::texts(&intents);
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let blend = Blend { clauses: self.way != Way::Undivided, ..Blend::default() };
        let embedded = Embedded { blend, ..Embedded::new(&intents, &vectors) };
        let mut candidates = embedded.rank(snapshot, RANKED, None)?;
        let top = candidates.first().map_or(0.0, |first| first.overlap);
        if self.way == Way::Clauses {
            // Stable, as the router's choice is.
            candidates.sort_by_key(|candidate| !candidate.leads);
        }
        // Tools that the query names come on top of what was asked for.
        candidates.truncate(RANKED);
        let ranked = candidates.iter().map(|candidate| self.id(snapshot, candidate.slot)).collect();
        Ok(Ranked { ranked, top })
    }

    fn by_overlap(&self, snapshot: &Snapshot, query: &str) -> Result<Ranked, Error> {
        let (Some(index), Some(vector)) = (snapshot.vectors(), self.embeddings.vector(query))
        else {
            return Ok(Ranked { ranked: Vec::new(), top: 0.0 });
        };
        let hits = index.search(vector, RANKED, None).map_err(Error::internal)?;
        let top = hits.first().map_or(0.0, |hit| hit.overlap);
        Ok(Ranked { ranked: hits.iter().map(|hit| self.id(snapshot, hit.slot)).collect(), top })
    }

    fn id(&self, snapshot: &Snapshot, slot: u32) -> String {
        let id = &snapshot.tool(slot).id;
        format!("{}/{}", self.names.in_file(&id.server), id.name.as_str())
    }
}
