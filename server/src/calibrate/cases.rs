//! Queries as the product answers them, each candidate judged by the labels.

use crate::error::Error;
use crate::eval::LabelledQuery;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::policy::Features;
use crate::router::intent::{self, Intent};
use crate::router::learned::Best;
use crate::router::rank::{Candidate, Embedded, FoundBy};
use crate::shard::snapshot::Snapshot;

/// Candidates that are looked at: as many as Route ranks.
const CANDIDATES: usize = 100;

/// A candidate and whether it serves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The cosine with the query.
    pub overlap: f32,
    /// The cosine with the nearest of the query and its clauses.
    pub nearest: f32,
    /// What it is ranked by.
    pub score: f32,
    /// What the learned gate goes by.
    pub features: Features,
    /// The labels name it.
    pub is_relevant: bool,
}

/// One query's candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Best first.
    pub candidates: Vec<Judged>,
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
        let ranked = Embedded::new(&intents, &vectors).rank(snapshot, CANDIDATES, None)?;
        let best = Best::of(ranked.iter().filter(|one| one.found_by == FoundBy::Overlap));
        let judged = |candidate: &Candidate| {
            let id = &snapshot.tool(candidate.slot).id;
            let named = format!("{}/{}", stock.names.in_file(&id.server), id.name.as_str());
            let is_relevant = query.relevant.contains(&named);
            let (overlap, nearest) = (candidate.overlap, candidate.parts.nearest);
            let features = best.features(candidate);
            Judged { overlap, nearest, score: candidate.score, features, is_relevant }
        };
        let candidates = ranked.iter().map(judged).collect();
        Ok(Self { candidates, relevant: query.relevant.len() })
    }

    /// Whether some tool serves it.
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.relevant > 0
    }

    /// The best overlap with the query or one of its clauses; -1 without candidates.
    #[must_use]
    pub fn nearest(&self) -> f32 {
        self.candidates.iter().map(|one| one.nearest).fold(-1.0, f32::max)
    }

    /// Pairs of the query and a tool that serves it.
    #[must_use]
    pub fn found_or_missed(&self) -> usize {
        self.relevant
    }
}
