//! Reasons why active sets lack relevant tools, as counts over labelled queries. Each query counts once, by the first reason
//! that holds.

use std::collections::{BTreeMap, BTreeSet};

use super::query_file::LabelledQuery;
use super::ranking::Answer;
use toolgate_routing::router::ranking::fit::Fit;

/// Reason why an active set lacks a relevant tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The query needs several tools, and the set has some of them.
    MultiHop,
    /// The tool is among the first `top_k` of the ranking, and the cut keeps it out.
    StrictCut,
    /// Several other tools fit the query about equally.
    Ambiguous,
    /// The ranking has the tool too late, or not at all: its text does not say what is asked for.
    PoorText,
}

/// Numbers of queries whose active sets lack relevant tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// Number of queries by reason; reasons that did not occur are left out.
    pub counts: BTreeMap<Failure, usize>,
}

impl Failure {
    /// All reasons, in the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::MultiHop, Self::StrictCut, Self::Ambiguous, Self::PoorText];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MultiHop => "multi_hop",
            Self::StrictCut => "strict_cut",
            Self::Ambiguous => "ambiguous",
            Self::PoorText => "poor_text",
        }
    }
}

impl Failures {
    /// Counts the queries with labels. Relevant tools that the catalog does not have are `missing`, and no failure of the
    /// ranking.
    #[must_use]
    pub fn of(
        answers: &[Answer],
        queries: &[&LabelledQuery],
        missing: &BTreeSet<String>,
        top_k: usize,
    ) -> Self {
        let mut failures = Self::default();
        for (answer, query) in answers.iter().zip(queries) {
            let relevant: Vec<&String> =
                query.relevant.iter().filter(|tool| !missing.contains(*tool)).collect();
            if let Some(failure) = failure(answer, &relevant, top_k) {
                *failures.counts.entry(failure).or_default() += 1;
            }
        }
        failures
    }

    /// Returns the number of queries that failed for a reason.
    #[must_use]
    pub fn count(&self, failure: Failure) -> usize {
        self.counts.get(&failure).copied().unwrap_or(0)
    }
}

/// Returns the reason why a set lacks a relevant tool; `None` if it has all.
fn failure(answer: &Answer, relevant: &[&String], top_k: usize) -> Option<Failure> {
    let (had, lacking): (Vec<&String>, Vec<&String>) =
        relevant.iter().copied().partition(|tool| answer.set.tools.contains(*tool));
    if lacking.is_empty() {
        return None;
    }
    let mut first = answer.ranked.ranked.iter().take(top_k);
    Some(if !had.is_empty() {
        Failure::MultiHop
    } else if first.any(|tool| lacking.contains(&tool)) {
        Failure::StrictCut
    } else if matches!(answer.fit, Fit::Ambiguous(_)) {
        Failure::Ambiguous
    } else {
        Failure::PoorText
    })
}

#[cfg(test)]
mod tests {
    use super::super::ranking::{Ranked, Set};
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn answer(ranked: &[&str], set: &[&str], fit: Fit) -> Answer {
        Answer {
            ranked: Ranked { ranked: names(ranked), ..Ranked::default() },
            set: Set { tools: names(set), ..Set::default() },
            fit,
            ..Answer::default()
        }
    }

    #[test]
    fn each_query_that_lacks_a_tool_has_one_reason() {
        let query = |relevant: &[&str]| LabelledQuery {
            relevant: names(relevant).into_iter().collect(),
            ..LabelledQuery::default()
        };
        let ambiguous = || Fit::Ambiguous(vec![0, 1]);
        let cases = [
            (answer(&["a", "b"], &["a"], Fit::Clear), query(&["a"]), None),
            (answer(&["a", "b"], &["a"], Fit::Clear), query(&["a", "b"]), Some(Failure::MultiHop)),
            (answer(&["a", "b"], &["a"], ambiguous()), query(&["b"]), Some(Failure::StrictCut)),
            (answer(&["a", "b"], &[], Fit::None), query(&["b"]), Some(Failure::StrictCut)),
            (
                answer(&["a", "b", "c"], &["a", "b"], ambiguous()),
                query(&["c"]),
                Some(Failure::Ambiguous),
            ),
            (answer(&["a", "b", "c"], &["a"], Fit::Clear), query(&["c"]), Some(Failure::PoorText)),
            (answer(&["a"], &["a"], Fit::Clear), query(&["d"]), Some(Failure::PoorText)),
            (answer(&["a"], &["a"], Fit::Clear), query(&["gone"]), None),
            (answer(&["a"], &["a"], Fit::Clear), query(&[]), None),
        ];
        let missing: BTreeSet<String> = ["gone".to_owned()].into();
        for (answer, query, expected) in &cases {
            let failures = Failures::of(std::slice::from_ref(answer), &[query], &missing, 2);
            let counts: BTreeMap<Failure, usize> = expected.iter().map(|one| (*one, 1)).collect();
            assert_eq!(failures.counts, counts, "{answer:?} {query:?}");
        }
        let answers = cases.each_ref().map(|(answer, _, _)| answer.clone());
        let queries = cases.each_ref().map(|(_, query, _)| query);
        let all = Failures::of(&answers, &queries, &missing, 2);
        assert_eq!(Failure::ALL.map(|one| all.count(one)), [1, 2, 1, 2]);
    }
}
