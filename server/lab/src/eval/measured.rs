//! Means of a sample's measures with their intervals, for all its queries or by a field of the queries.

use std::collections::BTreeSet;

use super::bootstrap::{Bootstrap, Estimate};
use super::metrics::Measure;
use super::query_file::LabelledQuery;
use super::ranking::Answer;
use super::sample::Sample;

/// Means of the measures of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Number of queries in the sample.
    pub queries: usize,
    /// Mean of each measure.
    pub means: Vec<(Measure, Estimate)>,
}

impl Measured {
    /// Computes the means of a sample; `None` if it is empty.
    #[must_use]
    pub fn of(sample: &Sample, bootstrap: &Bootstrap) -> Option<Self> {
        let values: Vec<&[f64]> = sample.columns.iter().map(|c| c.values.as_slice()).collect();
        let measures = sample.columns.iter().map(|column| column.measure);
        let measured = || Self {
            queries: sample.len(),
            means: measures.zip(bootstrap.means(&values)).collect(),
        };
        (!sample.is_empty()).then(measured)
    }

    /// Returns the mean of one measure.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Option<Estimate> {
        self.means.iter().find(|(known, _)| *known == measure).map(|(_, estimate)| *estimate)
    }
}

/// Field by which queries are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Kind of query.
    Kind,
    /// Language of the query.
    Language,
}

impl Field {
    fn of(self, query: &LabelledQuery) -> Option<&str> {
        match self {
            Self::Kind => query.kind.as_deref(),
            Self::Language => query.language.as_deref(),
        }
    }
}

/// Queries with the same value in a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Value of the field.
    pub name: String,
    /// Means over the queries with labels.
    pub labelled: Option<Measured>,
    /// Means over the queries that need no tool.
    pub no_tool: Option<Measured>,
}

/// Groups queries by a field, in the order of its values. Queries without the field are in no group. A value without
/// any query to measure makes no group.
#[must_use]
pub fn groups(
    answers: &[Answer],
    queries: &[&LabelledQuery],
    field: Field,
    bootstrap: &Bootstrap,
) -> Vec<Group> {
    let names: BTreeSet<&str> = queries.iter().filter_map(|query| field.of(query)).collect();
    let group = |name: &str| {
        let is_in = |query: &LabelledQuery| field.of(query) == Some(name);
        let labelled = Sample::of(answers, queries, &Measure::LABELLED, |query| {
            is_in(query) && query.is_labelled()
        });
        let no_tool = Sample::of(answers, queries, &Measure::NO_TOOL, |query| {
            is_in(query) && query.needs_no_tool
        });
        Group {
            name: name.to_owned(),
            labelled: Measured::of(&labelled, bootstrap),
            no_tool: Measured::of(&no_tool, bootstrap),
        }
    };
    let groups = names.into_iter().map(group);
    groups.filter(|group| group.labelled.is_some() || group.no_tool.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ranking::{Ranked, Set};

    #[test]
    fn queries_are_measured_by_kind_and_by_language() {
        let answer = |first: &str| Answer {
            ranked: Ranked { ranked: vec![first.to_owned()], top: 0.5, ..Ranked::default() },
            set: Set { tools: vec![first.to_owned()], tokens: 10 },
            ..Answer::default()
        };
        let query = |relevant: &str, kind: &str, language: Option<&str>| LabelledQuery {
            relevant: [relevant.to_owned()].into_iter().filter(|id| !id.is_empty()).collect(),
            needs_no_tool: relevant.is_empty(),
            kind: Some(kind.to_owned()),
            language: language.map(str::to_owned),
            ..LabelledQuery::default()
        };
        let queries =
            [query("a", "x", None), query("b", "x", Some("de")), query("", "chat", Some("de"))];
        let queries: Vec<_> = queries.iter().collect();
        let answers = [answer("a"), answer("a"), answer("a")];
        let bootstrap = Bootstrap::default();
        let kinds = groups(&answers, &queries, Field::Kind, &bootstrap);
        let names: Vec<_> = kinds.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["chat", "x"]);
        assert!(kinds[0].labelled.is_none());
        let of = |measured: &Option<Measured>, measure| {
            let estimate = measured.as_ref().and_then(|measured| measured.get(measure));
            estimate.expect("measured").value
        };
        assert_eq!(of(&kinds[0].no_tool, Measure::FalseAccept), 1.0);
        assert_eq!(of(&kinds[1].labelled, Measure::Recall(1)), 0.5);
        let languages = groups(&answers, &queries, Field::Language, &bootstrap);
        assert_eq!(languages.len(), 1);
        assert_eq!(languages[0].labelled.as_ref().map(|measured| measured.queries), Some(1));
    }
}
