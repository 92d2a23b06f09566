//! Ranks each query by the router's own ranking, with nothing cut: no threshold, no cap, no state.

use serde::Serialize;

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

/// Ranks every query.
///
/// # Errors
/// A defect of the index.
pub fn rank(
    snapshot: &Snapshot,
    queries: &[LabelledQuery],
    embeddings: &Embeddings,
    names: &ServerNames,
) -> Result<Vec<Ranked>, Error> {
    let one = |query: &LabelledQuery| {
        let intents = [Intent { text: query.text.clone(), weight: 1.0 }];
        let vectors: Vec<_> =
            embeddings.vector(&query.text).map(<[f32]>::to_vec).into_iter().collect();
        let embedded = Embedded { intents: &intents, vectors: &vectors };
        let mut candidates = embedded.rank(snapshot, RANKED, None)?;
        // Tools that the query names come on top of what was asked for.
        candidates.truncate(RANKED);
        let top = candidates.first().map_or(0.0, |first| first.overlap);
        let id = |candidate: &Candidate| {
            let id = &snapshot.tool(candidate.slot).id;
            format!("{}/{}", names.in_file(&id.server), id.name.as_str())
        };
        Ok(Ranked { ranked: candidates.iter().map(id).collect(), top })
    };
    queries.iter().map(one).collect()
}
