//! Queries as the product answers them, each candidate judged by the labels.

use crate::error::Error;
use crate::eval::LabelledQuery;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::router::cut::leaders_first;
use crate::router::intent::{self, Intent};
use crate::router::learned::Best;
use crate::router::level::Level;
use crate::router::rank::{Candidate, Embedded};
use crate::shard::snapshot::Snapshot;

/// Candidates that are looked at: as many as Route ranks.
const CANDIDATES: usize = 100;

/// A candidate and whether it serves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// As Route ranks it.
    pub candidate: Candidate,
    /// The labels name it.
    pub is_relevant: bool,
}

/// One query's candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Those that the query names first, then each clause's best, then the rest: the order in which Route takes them.
    pub candidates: Vec<Judged>,
    /// What each is held against.
    pub best: Best,
    /// Whether a level is asked of the query.
    pub has_level: bool,
    /// Tools that serve it, found or not; 0 when it needs none.
    pub relevant: usize,
}

impl Case {
    /// Ranks the queries that are labelled or need no tool.
    ///
    /// # Errors
    /// A defect of the index.
    pub fn all(
        snapshot: &Snapshot,
        stock: &Stock,
        embeddings: &Embeddings,
        queries: &[LabelledQuery],
    ) -> Result<Vec<Self>, Error> {
        let told = queries.iter().filter(|query| query.is_labelled() || query.needs_no_tool);
        told.map(|query| Self::of(snapshot, stock, embeddings, query)).collect()
    }

    fn of(
        snapshot: &Snapshot,
        stock: &Stock,
        embeddings: &Embeddings,
        query: &LabelledQuery,
    ) -> Result<Self, Error> {
        let intents = [Intent::new(query.text.clone(), 1.0)];
        let texts = intent::texts(&intents);
        let vectors = texts.iter().filter_map(|text| embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let mut ranked = Embedded::new(&intents, &vectors).rank(snapshot, CANDIDATES, None)?;
        leaders_first(&mut ranked);
        let best = Best::of(ranked.iter());
        let judged = |candidate: Candidate| {
            let id = &snapshot.tool(candidate.slot).id;
            let named = format!("{}/{}", stock.names.in_file(&id.server), id.name.as_str());
            Judged { candidate, is_relevant: query.relevant.contains(&named) }
        };
        let candidates = ranked.into_iter().map(judged).collect();
        let (has_level, relevant) = (Level::is_asked_of(&intents), query.relevant.len());
        Ok(Self { candidates, best, has_level, relevant })
    }

    /// Whether some tool serves it.
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.relevant > 0
    }
}
