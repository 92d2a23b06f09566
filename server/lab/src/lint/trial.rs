//! Rankings of a catalog with other summaries instead of its own, and the choice of the summaries to keep. The ranking
//! is the router's.

use std::collections::BTreeMap;

use crate::eval::LabelledQuery;
use crate::eval::embeddings::Embeddings;
use crate::eval::ranking::{Ranked, Ranking, Way};
use crate::eval::stock::Stock;
use toolgate_core::error::Error;
use toolgate_routing::router::query::Options;
use toolgate_routing::shard::snapshot::Snapshot;

/// Summaries by the tool's index in the catalog.
pub type Written = BTreeMap<usize, String>;

/// Catalog with embeddings of all texts.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// Catalog to rank.
    pub stock: &'a Stock,
    /// Embeddings of the catalog's summaries, of the proposed summaries and of the queries.
    pub embeddings: &'a Embeddings,
    /// Number of dimensions of an embedding.
    pub dimensions: usize,
}

/// Queries, and the queries that belong to each tool.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    /// Tools of the catalog as `server/tool`, by index.
    pub ids: Vec<String>,
    /// All queries.
    pub queries: Vec<LabelledQuery>,
    /// For each tool, by its index in the catalog, the indexes of its queries.
    pub of_tool: Vec<Vec<usize>>,
}

/// Condition for keeping a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The rank must improve.
    Gain,
    /// The rank must not get worse.
    NoLoss,
}

/// Kept summaries, and the rankings of the queries with all of them applied.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Summaries that meet the condition.
    pub kept: Written,
    /// One ranking for each query.
    pub ranked: Vec<Ranked>,
}

impl Trial<'_> {
    /// Builds the catalog's index with these summaries.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub fn snapshot(&self, written: &Written) -> Result<Snapshot, Error> {
        let mut catalog = self.stock.catalog.clone();
        for (place, summary) in written {
            catalog.tools[*place].record.summary.clone_from(summary);
        }
        let snapshot = Snapshot::build(catalog, self.embeddings.vectors(), self.dimensions)?;
        snapshot.build_graph();
        Ok(snapshot)
    }

    /// Ranks queries on a snapshot of this catalog.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub fn rank(
        &self,
        snapshot: &Snapshot,
        queries: &[LabelledQuery],
    ) -> Result<Vec<Ranked>, Error> {
        let names = &self.stock.names;
        let embeddings = self.embeddings;
        let options = &Options::default();
        let ranking =
            Ranking { embeddings, names, options, clauses: true, way: Way::Router, memory: None };
        let queries: Vec<&LabelledQuery> = queries.iter().collect();
        let answers = ranking.answer(snapshot, &queries)?;
        Ok(answers.into_iter().map(|answer| answer.ranked).collect())
    }

    /// Drops summaries that do not meet the condition, until all remaining ones, applied together, meet it. `before`
    /// holds the rankings without any of them.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub fn settle(
        &self,
        proposed: Written,
        probes: &Probes,
        before: &[Ranked],
        wanted: Wanted,
    ) -> Result<Settled, Error> {
        let mut kept = proposed;
        // This ends: each round drops a summary, or is the last.
        loop {
            let ranked = self.rank(&self.snapshot(&kept)?, &probes.queries)?;
            let count = kept.len();
            kept.retain(|place, _| {
                let now = probes.score(*place, &ranked);
                let then = probes.score(*place, before);
                now > then || (wanted == Wanted::NoLoss && now >= then)
            });
            if kept.len() == count {
                return Ok(Settled { kept, ranked });
            }
        }
    }
}

impl Probes {
    /// Creates one query for each tool. `ids` are the tools of the catalog, in its order.
    #[must_use]
    pub fn one_each(texts: Vec<String>, ids: Vec<String>) -> Self {
        let query = |(text, id): (String, &String)| {
            let relevant = [id.clone()].into();
            LabelledQuery { text, relevant, ..LabelledQuery::default() }
        };
        let queries = texts.into_iter().zip(&ids).map(query).collect();
        Self { queries, of_tool: (0..ids.len()).map(|place| vec![place]).collect(), ids }
    }

    /// Returns the mean reciprocal rank of a tool over its queries, or 0 if it is never ranked or has no query.
    #[must_use]
    pub fn score(&self, place: usize, ranked: &[Ranked]) -> f64 {
        let queries = &self.of_tool[place];
        let reciprocal = |query: &usize| {
            let rank = rank_in(&ranked[*query], &self.ids[place]);
            rank.map_or(0.0, |rank| 1.0 / rank as f64)
        };
        queries.iter().map(reciprocal).sum::<f64>() / queries.len().max(1) as f64
    }
}

/// Returns the rank of a tool, from 1, or `None` if it was not ranked.
#[must_use]
pub fn rank_in(ranked: &Ranked, id: &str) -> Option<usize> {
    ranked.ranked.iter().position(|other| other == id).map(|place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(ids: &[&str]) -> Ranked {
        Ranked {
            ranked: ids.iter().map(|id| (*id).to_owned()).collect(),
            top: 0.5,
            ..Ranked::default()
        }
    }

    #[test]
    fn scores_are_mean_reciprocal_ranks() {
        let ids = ["s/a".to_owned(), "s/b".to_owned()];
        let mut probes = Probes::one_each(vec!["x".into(), "y".into()], ids.into());
        let rankings = [ranked(&["s/b", "s/a"]), ranked(&["s/a"])];
        assert_eq!((probes.score(0, &rankings), probes.score(1, &rankings)), (0.5, 0.0));
        probes.of_tool[0] = vec![0, 1];
        assert_eq!(probes.score(0, &rankings), 0.75);
        probes.of_tool[1] = Vec::new();
        assert_eq!(probes.score(1, &rankings), 0.0);
        assert_eq!(rank_in(&rankings[0], "s/a"), Some(2));
    }
}
