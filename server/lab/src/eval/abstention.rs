//! Separation of queries that need no tool from those that do, by the best overlap of any tool, over all thresholds.

use super::bootstrap::{Bootstrap, Estimate};
use super::query_file::LabelledQuery;
use super::ranking::Answer;

/// Number of threshold steps of the curve, from 0 to 1.
const STEPS: u32 = 100;

/// Separation of the two kinds of query by overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct Abstention {
    /// Number of queries with labels.
    pub labelled: usize,
    /// Number of queries that need no tool.
    pub no_tool: usize,
    /// Probability that a query with labels has a higher overlap than one that needs no tool, 0 to 1. A tie counts
    /// half. It is the area under the ROC curve (H. B. Mann and D. R. Whitney, "On a test of whether one of two random
    /// variables is stochastically larger than the other", 1947).
    pub auc: Estimate,
    /// Error rates at each threshold.
    pub curve: Vec<Point>,
}

/// Error rates at one threshold. A query that names a tool gets it at any threshold; these rates ignore that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Least overlap of the best tool, 0 to 1.
    pub threshold: f64,
    /// Share of the queries needing no tool that would get one, 0 to 1.
    pub false_accepts: f64,
    /// Share of the queries with labels that would get no tool, 0 to 1.
    pub false_rejects: f64,
}

impl Abstention {
    /// Compares the overlaps of the two kinds of query. Returns `None` unless there are queries of both kinds.
    #[must_use]
    pub fn of(
        answers: &[Answer],
        queries: &[&LabelledQuery],
        bootstrap: &Bootstrap,
    ) -> Option<Self> {
        let overlaps = |wanted: fn(&LabelledQuery) -> bool| -> Vec<f32> {
            let pairs = answers.iter().zip(queries).filter(|(_, query)| wanted(query));
            pairs.map(|(answer, _)| answer.overlap).collect()
        };
        let labelled = overlaps(LabelledQuery::is_labelled);
        let no_tool = overlaps(|query| query.needs_no_tool);
        let held = || Self {
            labelled: labelled.len(),
            no_tool: no_tool.len(),
            auc: auc(&labelled, &no_tool, bootstrap),
            curve: curve(&labelled, &no_tool),
        };
        (!labelled.is_empty() && !no_tool.is_empty()).then(held)
    }
}

fn auc(labelled: &[f32], no_tool: &[f32], bootstrap: &Bootstrap) -> Estimate {
    let mut levels: Vec<f32> = labelled.iter().chain(no_tool).copied().collect();
    levels.sort_by(f32::total_cmp);
    levels.dedup();
    let level = |overlap: &f32| levels.partition_point(|level| level < overlap);
    let places = |overlaps: &[f32]| -> Vec<usize> { overlaps.iter().map(level).collect() };
    let of_labelled = places(labelled);
    let of_no_tool = places(no_tool);
    let by_level = |places: &[usize], counts: &[u32]| {
        let mut sums = vec![0_u32; levels.len()];
        places.iter().zip(counts).for_each(|(place, count)| sums[*place] += count);
        sums
    };
    bootstrap.of_two((labelled.len(), no_tool.len()), |first, second| {
        let first = by_level(&of_labelled, first);
        let second = by_level(&of_no_tool, second);
        let mut below = 0.0;
        let mut won = 0.0;
        for (labelled, no_tool) in first.into_iter().zip(second) {
            won += f64::from(labelled) * (below + f64::from(no_tool) / 2.0);
            below += f64::from(no_tool);
        }
        won / (labelled.len() as f64 * no_tool.len() as f64)
    })
}

fn curve(labelled: &[f32], no_tool: &[f32]) -> Vec<Point> {
    let share = |overlaps: &[f32], threshold: f64| {
        let reach = overlaps.iter().filter(|overlap| f64::from(**overlap) >= threshold).count();
        reach as f64 / overlaps.len() as f64
    };
    let point = |step: u32| {
        let threshold = f64::from(step) / f64::from(STEPS);
        Point {
            threshold,
            false_accepts: share(no_tool, threshold),
            false_rejects: 1.0 - share(labelled, threshold),
        }
    };
    (0..=STEPS).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labelled: &[f32], no_tool: &[f32]) -> Option<Abstention> {
        let answer = |overlap: &f32| Answer { overlap: *overlap, ..Answer::default() };
        let answers: Vec<_> = labelled.iter().chain(no_tool).map(answer).collect();
        let needs = LabelledQuery {
            relevant: ["a".to_owned()].into_iter().collect(),
            ..LabelledQuery::default()
        };
        let needs_not = LabelledQuery { needs_no_tool: true, ..LabelledQuery::default() };
        let mut queries = vec![&needs; labelled.len()];
        queries.extend(vec![&needs_not; no_tool.len()]);
        Abstention::of(&answers, &queries, &Bootstrap::default())
    }

    #[test]
    fn the_area_counts_pairs_and_half_of_ties() {
        let held = of(&[0.6, 0.4, 0.2], &[0.4, 0.1]).expect("both kinds");
        // Of six pairs, four are won, one is tied and one is lost.
        assert!((held.auc.value - 4.5 / 6.0).abs() < 1e-12, "{held:?}");
        assert_eq!((held.labelled, held.no_tool), (3, 2));
        assert_eq!(of(&[0.5, 0.6], &[0.1]).expect("both").auc.value, 1.0);
        assert_eq!(of(&[0.5], &[0.5]).expect("both").auc.value, 0.5);
        let interval = held.auc.interval.expect("resampled");
        assert!(interval.low < 0.5 && interval.high == 1.0, "{interval:?}");
        assert!(of(&[0.5], &[]).is_none() && of(&[], &[0.5]).is_none());
    }

    #[test]
    fn a_higher_threshold_accepts_less_and_rejects_more() {
        let curve = of(&[0.6, 0.4], &[0.5, 0.1]).expect("both kinds").curve;
        let at = |step: usize| (curve[step].false_accepts, curve[step].false_rejects);
        assert_eq!(
            (at(0), at(30), at(55), at(100)),
            ((1.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.0, 1.0))
        );
        let falls = |pair: &[Point]| {
            pair[0].false_accepts >= pair[1].false_accepts
                && pair[0].false_rejects <= pair[1].false_rejects
        };
        assert!(curve.windows(2).all(falls));
    }
}
