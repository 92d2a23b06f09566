//! Measures of many queries, query by query. Means, intervals and comparisons are computed from them.

use sha2::{Digest as _, Sha256};

use super::metrics::Measure;
use super::query_file::LabelledQuery;
use super::ranking::Answer;

/// One measure of every query of a sample, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Measure of the column.
    pub measure: Measure,
    /// Value for each query.
    pub values: Vec<f64>,
}

impl Column {
    /// Returns the mean; 0 for an empty column.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(&self.values)
    }
}

/// Measures of the same queries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Hash of each query and its labels, which identifies the query.
    pub keys: Vec<String>,
    /// Columns, one per measure, each with a value per query.
    pub columns: Vec<Column>,
}

impl Sample {
    /// Takes `measures` of the answers whose queries satisfy `wanted`.
    #[must_use]
    pub fn of(
        answers: &[Answer],
        queries: &[&LabelledQuery],
        measures: &[Measure],
        wanted: impl Fn(&LabelledQuery) -> bool,
    ) -> Self {
        let pairs = || answers.iter().zip(queries).filter(|(_, query)| wanted(query));
        let values = |measure: Measure| {
            pairs().map(|(answer, query)| measure.of(answer, &query.relevant)).collect()
        };
        let column = |measure: &Measure| Column { measure: *measure, values: values(*measure) };
        Self {
            keys: pairs().map(|(_, query)| key(query)).collect(),
            columns: measures.iter().map(column).collect(),
        }
    }

    /// Returns the number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the column of a measure; `None` if it was not taken.
    #[must_use]
    pub fn column(&self, measure: Measure) -> Option<&Column> {
        self.columns.iter().find(|column| column.measure == measure)
    }
}

/// Samples of one way to rank, query by query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// Measures of the queries with labels.
    pub labelled: Sample,
    /// Measures of the queries that need no tool.
    pub no_tool: Sample,
}

impl Samples {
    /// Takes all measures of all answers.
    #[must_use]
    pub fn of(answers: &[Answer], queries: &[&LabelledQuery]) -> Self {
        Self {
            labelled: Sample::of(answers, queries, &Measure::LABELLED, LabelledQuery::is_labelled),
            no_tool: Sample::of(answers, queries, &Measure::NO_TOOL, |query| query.needs_no_tool),
        }
    }

    /// Returns both samples, first the one with labels.
    pub fn both(&self) -> impl Iterator<Item = &Sample> {
        [&self.labelled, &self.no_tool].into_iter()
    }
}

/// Returns a hash of a query and its labels. A change in either gives another hash.
fn key(query: &LabelledQuery) -> String {
    let mut hash = Sha256::new_with_prefix(query.text.as_bytes());
    for id in &query.relevant {
        // The separator is a byte that no text and no name contains.
        hash.update([0]);
        hash.update(id.as_bytes());
    }
    hex::encode(&hash.finalize()[..8])
}

/// Returns the mean; 0 without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the value below which `share` of the sorted values lies, interpolated; 0 without values. `share` is 0 to 1.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ranking::Ranked;

    #[test]
    fn only_wanted_queries_are_measured() {
        let answer = |first: &str| Answer {
            ranked: Ranked { ranked: vec![first.to_owned()], top: 0.5, ..Ranked::default() },
            ..Answer::default()
        };
        let query = |relevant: &[&str]| LabelledQuery {
            relevant: relevant.iter().map(|id| (*id).to_owned()).collect(),
            ..LabelledQuery::default()
        };
        let no_tool = LabelledQuery { needs_no_tool: true, ..query(&[]) };
        let queries = [&query(&["a"]), &query(&[]), &query(&["b", "c"]), &no_tool];
        let answers = [answer("a"), answer("b"), answer("b"), answer("a")];
        let samples = Samples::of(&answers, &queries);
        assert_eq!((samples.labelled.len(), samples.no_tool.len()), (2, 1));
        let recall = samples.labelled.column(Measure::Recall(1)).expect("measured");
        assert_eq!((recall.values.as_slice(), recall.mean()), ([1.0, 0.5].as_slice(), 0.75));
        assert_eq!(samples.no_tool.column(Measure::Recall(1)), None);
        assert!(Sample::default().is_empty());
        let [a, b] = &samples.labelled.keys[..] else { panic!("two queries") };
        assert!(a != b && a.len() == 16, "{a}");
    }

    #[test]
    fn quantiles_lie_between_values() {
        let sorted = [1.0, 2.0, 4.0];
        for (share, wanted) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)] {
            assert!((quantile(&sorted, share) - wanted).abs() < 1e-12, "{share}");
        }
        assert_eq!((quantile(&[], 0.5), mean(&[])), (0.0, 0.0));
    }
}
