//! Comparison of two ways to answer the same queries: each measure's means, their difference, and whether the
//! difference is more than chance.

use super::bootstrap::{Bootstrap, Estimate};
use super::metrics::Measure;
use super::randomisation::p_value;
use super::sample::{Column, Sample, Samples};

/// Comparison of this evaluation with another.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Name of the other evaluation.
    pub name: String,
    /// Rows of the measures that both have.
    pub rows: Vec<Row>,
}

/// One measure in both evaluations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Measure that is compared.
    pub measure: Measure,
    /// Mean in this evaluation.
    pub this: f64,
    /// Mean in the other evaluation.
    pub other: f64,
    /// Mean of the differences per query, this minus the other, with its interval.
    pub difference: Estimate,
    /// Probability of such a difference if both are the same ([`p_value`]), 0 to 1.
    pub p: f64,
}

impl Comparison {
    /// Compares samples. Samples that are not of the same queries are skipped.
    #[must_use]
    pub fn of(name: &str, this: &Samples, other: &Samples, bootstrap: &Bootstrap) -> Self {
        let pairs = this.both().zip(other.both());
        let rows = pairs.flat_map(|(this, other)| rows(this, other, bootstrap)).collect();
        Self { name: name.to_owned(), rows }
    }
}

fn rows(this: &Sample, other: &Sample, bootstrap: &Bootstrap) -> Vec<Row> {
    if this.is_empty() || this.keys != other.keys {
        return Vec::new();
    }
    let columns = this.columns.iter();
    let pairs = columns.filter_map(|ours| Some((ours, other.column(ours.measure)?)));
    let pairs: Vec<(&Column, &Column)> = pairs.collect();
    let difference = |(ours, theirs): &(&Column, &Column)| -> Vec<f64> {
        ours.values.iter().zip(&theirs.values).map(|(ours, theirs)| ours - theirs).collect()
    };
    let differences: Vec<Vec<f64>> = pairs.iter().map(difference).collect();
    let columns: Vec<&[f64]> = differences.iter().map(Vec::as_slice).collect();
    let estimates = bootstrap.means(&columns);
    let rows = pairs.into_iter().zip(columns).zip(estimates);
    rows.map(|(((ours, theirs), differences), difference)| Row {
        measure: ours.measure,
        this: ours.mean(),
        other: theirs.mean(),
        difference,
        p: p_value(differences, bootstrap.seed),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(columns: &[(Measure, &[f64])]) -> Sample {
        let column = |(measure, values): &(Measure, &[f64])| Column {
            measure: *measure,
            values: values.to_vec(),
        };
        let keys = (0..columns[0].1.len()).map(|key| key.to_string()).collect();
        Sample { keys, columns: columns.iter().map(column).collect() }
    }

    #[test]
    fn measures_that_both_have_are_compared_query_by_query() {
        let ones = [1.0; 40];
        let halves: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let this = Samples {
            labelled: sample(&[(Measure::Recall(1), &ones), (Measure::Ndcg, &halves)]),
            no_tool: sample(&[(Measure::FalseAccept, &[1.0])]),
        };
        let other = Samples {
            labelled: sample(&[(Measure::Recall(1), &halves), (Measure::SetSize, &halves)]),
            no_tool: Sample::default(),
        };
        let compared = Comparison::of("other", &this, &other, &Bootstrap::default());
        let [row] = compared.rows[..] else { panic!("{compared:?}") };
        assert_eq!((row.measure, row.this, row.other), (Measure::Recall(1), 1.0, 0.5));
        let interval = row.difference.interval.expect("resampled");
        assert!(interval.low > 0.3 && interval.high < 0.7 && row.p < 0.001, "{row:?}");
    }

    #[test]
    fn the_same_twice_differs_by_nothing() {
        let samples = Samples {
            labelled: sample(&[(Measure::Ndcg, &[0.5, 1.0, 0.0])]),
            no_tool: Sample::default(),
        };
        let compared = Comparison::of("same", &samples, &samples, &Bootstrap::default());
        assert_eq!((compared.rows[0].difference.value, compared.rows[0].p), (0.0, 1.0));
    }
}
