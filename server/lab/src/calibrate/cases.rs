//! Answered queries: candidates ranked by the product and judged by the labels.

use std::collections::HashMap;

use crate::eval::LabelledQuery;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use toolgate_core::error::Error;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::ranking::cut::leaders_first;
use toolgate_routing::router::ranking::learned::Best;
use toolgate_routing::router::ranking::level::Level;
use toolgate_routing::router::ranking::rank::{Candidate, Embedded};
use toolgate_routing::router::ranking::recent;
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_routing::shard::tool::Tool;

/// Number of candidates per query, the same as Route ranks.
const CANDIDATES: usize = 100;

/// Candidate with the judgement of the labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Candidate with Route's score.
    pub candidate: Candidate,
    /// True if the labels name the tool.
    pub is_relevant: bool,
}

/// One answered query.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Candidates in the order in which Route takes them: those that the query names, then each clause's best, then the
    /// rest.
    pub candidates: Vec<Judged>,
    /// Best score and overlap among the candidates, with which each one is compared.
    pub best: Best,
    /// True if the best overlap of the query must reach a level.
    pub has_level: bool,
    /// Number of tools that serve the query, found or not; 0 if it needs none.
    pub relevant: usize,
}

impl Case {
    /// Ranks the queries that are labelled or need no tool.
    ///
    /// # Errors
    /// An internal error of the index.
    pub fn all(
        snapshot: &Snapshot,
        stock: &Stock,
        embeddings: &Embeddings,
        queries: &[LabelledQuery],
    ) -> Result<Vec<Self>, Error> {
        let catalog = Catalog::new(snapshot, stock, embeddings);
        let told = queries.iter().filter(|query| query.is_labelled() || query.needs_no_tool);
        told.map(|query| catalog.answer(query)).collect()
    }

    /// Returns true if some tool serves the query.
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.relevant > 0
    }
}

/// Catalog that the queries are ranked in.
struct Catalog<'a> {
    snapshot: &'a Snapshot,
    embeddings: &'a Embeddings,
    /// Labels of the tools, by slot.
    labels: Vec<String>,
    slots: HashMap<String, u32>,
}

impl<'a> Catalog<'a> {
    fn new(snapshot: &'a Snapshot, stock: &Stock, embeddings: &'a Embeddings) -> Self {
        let label = |tool: &Tool| {
            format!("{}/{}", stock.names.in_file(&tool.id.server), tool.id.name.as_str())
        };
        let labels: Vec<String> = snapshot.tools.iter().map(label).collect();
        let slots = labels.iter().cloned().zip(0..).collect();
        Self { snapshot, embeddings, labels, slots }
    }

    fn answer(&self, query: &LabelledQuery) -> Result<Case, Error> {
        let intents = [Intent::new(query.text.clone(), 1.0)];
        let texts = intent::texts(&intents);
        let vectors = texts.iter().filter_map(|text| self.embeddings.vector(text));
        let vectors: Vec<_> = vectors.map(<[f32]>::to_vec).collect();
        let mut ranked = Embedded::new(&intents, &vectors).rank(self.snapshot, CANDIDATES, None)?;
        let called = query.called.iter().filter_map(|label| self.slots.get(label).copied());
        recent::note_calls(self.snapshot, called, &mut ranked);
        leaders_first(&mut ranked);
        let best = Best::of(ranked.iter());
        let judged = |candidate: Candidate| {
            let label = &self.labels[candidate.slot as usize];
            Judged { candidate, is_relevant: query.relevant.contains(label) }
        };
        let candidates = ranked.into_iter().map(judged).collect();
        let has_level = Level::is_asked_of(&intents);
        let relevant = query.relevant.len();
        Ok(Case { candidates, best, has_level, relevant })
    }
}
