//! Measures of rankings against labels. Pure arithmetic: nothing here knows of tools.

use std::collections::BTreeSet;

use super::query_file::LabelledQuery;
use super::ranking::Ranked;

/// The ranks that recall is taken at.
pub const CUTS: [usize; 5] = [1, 3, 5, 10, 20];

/// The rank that nDCG is taken at.
pub const NDCG_AT: usize = 10;

/// Means over the queries that have labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// Recall at each of [`CUTS`]: the share of a query's relevant tools among the first.
    pub recall: [f64; CUTS.len()],
    /// Normalised discounted cumulated gain at [`NDCG_AT`], with a gain of 1 for each relevant tool
    /// (K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM
    /// Transactions on Information Systems 20(4), 2002) and the usual discount of log2(rank + 1).
    pub ndcg: f64,
}

impl Metrics {
    /// Measures rankings; `None` when no query has labels. A relevant tool that no ranking could hold
    /// counts as missed.
    #[must_use]
    pub fn of(ranked: &[Ranked], queries: &[LabelledQuery]) -> Option<Self> {
        let labelled = ranked.iter().zip(queries).filter(|(_, query)| !query.relevant.is_empty());
        let mut sum = Self { recall: [0.0; CUTS.len()], ndcg: 0.0 };
        let mut count = 0.0;
        for (ranked, query) in labelled {
            for (total, cut) in sum.recall.iter_mut().zip(CUTS) {
                *total += recall(&ranked.ranked, &query.relevant, cut);
            }
            sum.ndcg += ndcg(&ranked.ranked, &query.relevant, NDCG_AT);
            count += 1.0;
        }
        let mean = |total: f64| total / count;
        (count > 0.0).then(|| Self { recall: sum.recall.map(mean), ndcg: mean(sum.ndcg) })
    }

    /// Each measure with its name, such as `recall@5`.
    pub fn named(&self) -> impl Iterator<Item = (String, f64)> {
        let recall = CUTS.into_iter().zip(self.recall);
        let recall = recall.map(|(cut, value)| (format!("recall@{cut}"), value));
        recall.chain([(format!("ndcg@{NDCG_AT}"), self.ndcg)])
    }
}

/// The share of `relevant` among the first `cut`.
fn recall(ranked: &[String], relevant: &BTreeSet<String>, cut: usize) -> f64 {
    let found = ranked.iter().take(cut).filter(|id| relevant.contains(*id)).count();
    found as f64 / relevant.len() as f64
}

/// The discounted gain of the first `cut`, against the most that it could be.
fn ndcg(ranked: &[String], relevant: &BTreeSet<String>, cut: usize) -> f64 {
    let discounted = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let places = ranked.iter().take(cut).enumerate();
    let gain: f64 =
        places.filter(|(_, id)| relevant.contains(*id)).map(|(place, _)| discounted(place)).sum();
    let ideal: f64 = (0..relevant.len().min(cut)).map(discounted).sum();
    gain / ideal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(ids: &[&str]) -> Ranked {
        Ranked { ranked: ids.iter().map(|id| (*id).to_owned()).collect(), top: 0.5 }
    }

    fn query(relevant: &[&str]) -> LabelledQuery {
        let relevant = relevant.iter().map(|id| (*id).to_owned()).collect();
        LabelledQuery { text: "q".to_owned(), relevant }
    }

    fn check(actual: f64, wanted: f64) {
        assert!((actual - wanted).abs() < 1e-9, "{actual} for {wanted}");
    }

    #[test]
    fn by_hand() {
        // Relevant at ranks 2 and 4, the third one never found.
        let rankings = [ranked(&["x", "a", "y", "b", "z", "w"])];
        let metrics = Metrics::of(&rankings, &[query(&["a", "b", "c"])]).expect("labels");
        for (actual, wanted) in metrics.recall.into_iter().zip([0.0, 1.0, 2.0, 2.0, 2.0]) {
            check(actual, wanted / 3.0);
        }
        // 1/log2(3) + 1/log2(5) against 1 + 1/log2(3) + 1/log2(4).
        check(metrics.ndcg, (0.630_929_753_6 + 0.430_676_558_1) / (1.0 + 0.630_929_753_6 + 0.5));
    }

    #[test]
    fn perfect_and_hopeless_rankings() {
        let rankings = [ranked(&["a", "b", "x"]), ranked(&["x", "y"])];
        let metrics = Metrics::of(&rankings, &[query(&["a", "b"]), query(&["a"])]).expect("labels");
        check(metrics.recall[0], 0.25);
        check(metrics.recall[1], 0.5);
        check(metrics.ndcg, 0.5);
    }

    #[test]
    fn more_relevant_tools_than_places() {
        let ids: Vec<String> = (0..12).map(|i| format!("s/{i:02}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let metrics = Metrics::of(&[ranked(&ids)], &[query(&ids)]).expect("labels");
        check(metrics.ndcg, 1.0);
        check(metrics.recall[3], 10.0 / 12.0);
        check(metrics.recall[4], 1.0);
    }

    #[test]
    fn queries_without_labels_take_no_part() {
        let rankings = [ranked(&["a"]), ranked(&["b"])];
        let metrics = Metrics::of(&rankings, &[query(&["a"]), query(&[])]).expect("labels");
        assert_eq!((metrics.recall, metrics.ndcg), ([1.0; 5], 1.0));
        assert_eq!(Metrics::of(&rankings[1..], &[query(&[])]), None);
        let names: Vec<_> = metrics.named().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["recall@1", "recall@3", "recall@5", "recall@10", "recall@20", "ndcg@10"]
        );
    }
}
