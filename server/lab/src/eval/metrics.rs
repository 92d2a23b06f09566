//! Measures of a query's answer and their arithmetic, independent of catalogs.

use std::collections::BTreeSet;

use super::ranking::Answer;

/// Ranks at which recall is taken.
pub const CUTS: [usize; 5] = [1, 3, 5, 10, 20];

/// Rank at which nDCG is taken.
pub const NDCG_AT: usize = 10;

/// One measure of one query. Reports give its mean over several queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Share of the relevant tools within the given number of first ranks.
    Recall(usize),
    /// Normalised discounted cumulated gain at [`NDCG_AT`], with a gain of 1 for each relevant tool
    /// (K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM
    /// Transactions on Information Systems 20(4), 2002) and the usual discount of log2(rank + 1).
    Ndcg,
    /// One over the rank of the first relevant tool; 0 if none is ranked. Its mean is MRR (E. M. Voorhees, "The TREC-8
    /// Question Answering Track Report", TREC 1999). A tool beyond the end of the ranking counts as not ranked.
    ReciprocalRank,
    /// Number of tools in the active set.
    SetSize,
    /// Share of the active set that is relevant; 0 for an empty set.
    SetPrecision,
    /// Share of the relevant tools that the active set has.
    SetRecall,
    /// 1 if the active set has every relevant tool, else 0.
    SetWhole,
    /// 1 if the active set is empty, else 0. For a query that needs tools, this is a false reject.
    SetEmpty,
    /// Tokens of the active set as the model sees it.
    SetTokens,
    /// 1 if a query that needs no tool is sent one, else 0.
    FalseAccept,
}

impl Measure {
    /// Measures of queries that have labels.
    pub const LABELLED: [Self; 13] = [
        Self::Recall(CUTS[0]),
        Self::Recall(CUTS[1]),
        Self::Recall(CUTS[2]),
        Self::Recall(CUTS[3]),
        Self::Recall(CUTS[4]),
        Self::Ndcg,
        Self::ReciprocalRank,
        Self::SetSize,
        Self::SetPrecision,
        Self::SetRecall,
        Self::SetWhole,
        Self::SetEmpty,
        Self::SetTokens,
    ];

    /// Measures of queries that need no tool.
    pub const NO_TOOL: [Self; 1] = [Self::FalseAccept];

    /// Returns the name in reports, such as `recall@5`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Recall(cut) => format!("recall@{cut}"),
            Self::Ndcg => format!("ndcg@{NDCG_AT}"),
            Self::ReciprocalRank => "mrr".to_owned(),
            Self::SetSize => "set_size".to_owned(),
            Self::SetPrecision => "set_precision".to_owned(),
            Self::SetRecall => "set_recall".to_owned(),
            Self::SetWhole => "set_whole".to_owned(),
            Self::SetEmpty => "set_empty".to_owned(),
            Self::SetTokens => "set_tokens".to_owned(),
            Self::FalseAccept => "false_accepts".to_owned(),
        }
    }

    /// Returns the measure for an answer to a query with these relevant tools. Recall, nDCG and [`Measure::SetRecall`]
    /// need at least one relevant tool. A relevant tool that no ranking could hold counts as missed.
    #[must_use]
    pub fn of(self, answer: &Answer, relevant: &BTreeSet<String>) -> f64 {
        let ranked = &answer.ranked.ranked;
        let set = &answer.set.tools;
        let hits = || set.iter().filter(|id| relevant.contains(*id)).count() as f64;
        match self {
            Self::Recall(cut) => recall(ranked, relevant, cut),
            Self::Ndcg => ndcg(ranked, relevant, NDCG_AT),
            Self::ReciprocalRank => reciprocal_rank(ranked, relevant),
            Self::SetSize => set.len() as f64,
            Self::SetPrecision => hits() / set.len().max(1) as f64,
            Self::SetRecall => hits() / relevant.len() as f64,
            Self::SetWhole => share(relevant.iter().all(|id| set.contains(id))),
            Self::SetEmpty => share(set.is_empty()),
            Self::SetTokens => answer.set.tokens as f64,
            Self::FalseAccept => share(!set.is_empty()),
        }
    }
}

fn share(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// Returns the share of `relevant` among the first `cut`.
fn recall(ranked: &[String], relevant: &BTreeSet<String>, cut: usize) -> f64 {
    let found = ranked.iter().take(cut).filter(|id| relevant.contains(*id)).count();
    found as f64 / relevant.len() as f64
}

/// Returns the discounted gain of the first `cut`, divided by the largest possible gain.
fn ndcg(ranked: &[String], relevant: &BTreeSet<String>, cut: usize) -> f64 {
    let discounted = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let places = ranked.iter().take(cut).enumerate();
    let gain: f64 =
        places.filter(|(_, id)| relevant.contains(*id)).map(|(place, _)| discounted(place)).sum();
    let ideal: f64 = (0..relevant.len().min(cut)).map(discounted).sum();
    gain / ideal
}

fn reciprocal_rank(ranked: &[String], relevant: &BTreeSet<String>) -> f64 {
    let place = ranked.iter().position(|id| relevant.contains(id));
    place.map_or(0.0, |place| 1.0 / (place as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ranking::{Ranked, Set};

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn answer(ranked: &[&str], set: usize) -> Answer {
        Answer {
            ranked: Ranked { ranked: ids(ranked), top: 0.5, ..Ranked::default() },
            set: Set { tools: ids(&ranked[..set]), tokens: 100 * set as u64 },
            ..Answer::default()
        }
    }

    fn check(measure: Measure, answer: &Answer, relevant: &[&str], wanted: f64) {
        let actual = measure.of(answer, &ids(relevant).into_iter().collect());
        assert!((actual - wanted).abs() < 1e-9, "{}: {actual} for {wanted}", measure.name());
    }

    #[test]
    fn by_hand() {
        // The relevant tools are at ranks 2 and 4, and the third one is never found. The set is the first three.
        let answer = answer(&["x", "a", "y", "b", "z", "w"], 3);
        let relevant = ["a", "b", "c"];
        for (cut, found) in CUTS.into_iter().zip([0.0, 1.0, 2.0, 2.0, 2.0]) {
            check(Measure::Recall(cut), &answer, &relevant, found / 3.0);
        }
        // 1/log2(3) + 1/log2(5) against 1 + 1/log2(3) + 1/log2(4).
        let ndcg = (0.630_929_753_6 + 0.430_676_558_1) / (1.0 + 0.630_929_753_6 + 0.5);
        check(Measure::Ndcg, &answer, &relevant, ndcg);
        check(Measure::ReciprocalRank, &answer, &relevant, 0.5);
        check(Measure::SetSize, &answer, &relevant, 3.0);
        check(Measure::SetPrecision, &answer, &relevant, 1.0 / 3.0);
        check(Measure::SetRecall, &answer, &relevant, 1.0 / 3.0);
        check(Measure::SetWhole, &answer, &relevant, 0.0);
        check(Measure::SetWhole, &answer, &["a"], 1.0);
        check(Measure::SetEmpty, &answer, &relevant, 0.0);
        check(Measure::SetTokens, &answer, &relevant, 300.0);
        check(Measure::FalseAccept, &answer, &[], 1.0);
    }

    #[test]
    fn an_empty_set_is_precise_about_nothing() {
        let empty = answer(&["x", "a"], 0);
        for measure in [Measure::SetPrecision, Measure::SetRecall, Measure::SetWhole] {
            check(measure, &empty, &["a"], 0.0);
        }
        check(Measure::SetEmpty, &empty, &["a"], 1.0);
        check(Measure::FalseAccept, &empty, &[], 0.0);
        check(Measure::ReciprocalRank, &empty, &["b"], 0.0);
    }

    #[test]
    fn more_relevant_tools_than_places() {
        let ids: Vec<String> = (0..12).map(|i| format!("s/{i:02}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        check(Measure::Ndcg, &answer(&ids, 12), &ids, 1.0);
        check(Measure::Recall(10), &answer(&ids, 12), &ids, 10.0 / 12.0);
        check(Measure::Recall(20), &answer(&ids, 12), &ids, 1.0);
    }

    #[test]
    fn names_are_those_of_reports() {
        let names: Vec<_> = Measure::LABELLED.map(Measure::name).into_iter().take(7).collect();
        let wanted =
            ["recall@1", "recall@3", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr"];
        assert_eq!(names, wanted);
    }
}
