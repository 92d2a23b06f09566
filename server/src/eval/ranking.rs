//! Ranks each query by the router's own ranking, with nothing cut: no threshold, no cap, no state.

use serde::Serialize;

use super::clauses;
use super::embeddings::Embeddings;
use super::query_file::LabelledQuery;
use super::stock::ServerNames;
use crate::error::Error;
use crate::router::query::Intent;
use crate::router::rank::{Candidate, Embedded};
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
    /// Whether a query's clauses are intents of the same turn, each of which gets its best tool before any
    /// gets its second.
    pub in_clauses: bool,
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
        let mut texts = vec![query];
        if self.in_clauses {
            texts.extend(clauses::of(query));
        }
        let intent = |text: &&str| Intent { text: (*text).to_owned(), weight: 1.0 };
        let intents: Vec<_> = texts.iter().map(intent).collect();
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let embedded = Embedded { intents: &intents, vectors: &vectors };
        let mut candidates = embedded.rank(snapshot, RANKED, None)?;
        let top = candidates.first().map_or(0.0, |first| first.overlap);
        if self.in_clauses {
            // Stable, as the router's choice is.
            candidates.sort_by_key(|candidate| !candidate.leads);
        }
        // Tools that the query names come on top of what was asked for.
        candidates.truncate(RANKED);
        let id = |candidate: &Candidate| {
            let id = &snapshot.tool(candidate.slot).id;
            format!("{}/{}", self.names.in_file(&id.server), id.name.as_str())
        };
        Ok(Ranked { ranked: candidates.iter().map(id).collect(), top })
    }
}
