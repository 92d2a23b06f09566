//! Plots of an evaluation: recall by rank, and the queries that each threshold accepts and rejects wrongly.

use crate::cli::svg::{Chart, Line};
use toolgate_lab::eval::Report;
use toolgate_lab::eval::abstention::{Abstention, Point};
use toolgate_lab::eval::bootstrap::Estimate;
use toolgate_lab::eval::measured::Measured;
use toolgate_lab::eval::metrics::{CUTS, Measure};

const OURS: &str = "#1f4e9c";
const OTHER: &str = "#b4541a";
const THIRD: &str = "#2f7d4f";

/// Returns the file names and contents of the plots. Parts that were not measured have none.
pub(super) fn plots(report: &Report) -> Vec<(&'static str, String)> {
    let recall = recall(report).map(|chart| ("recall.svg", chart.to_svg()));
    let held = report.abstention.as_ref();
    let abstention = held.map(|held| ("abstention.svg", abstention(report, held).to_svg()));
    recall.into_iter().chain(abstention).collect()
}

fn recall(report: &Report) -> Option<Chart> {
    let ours = report.metrics.as_ref()?;
    let others = [("plain", OTHER, &report.baseline), ("by clauses", THIRD, &report.clauses)];
    let others = others
        .into_iter()
        .filter_map(|(name, colour, measured)| Some(recall_line(name, colour, measured.as_ref()?)));
    let mut first = recall_line("toolgate, with 95% intervals", OURS, ours);
    first.dots = true;
    Some(Chart {
        title: format!("Recall over {} labelled queries", ours.queries),
        across: "tools looked at",
        up: "recall",
        ticks: CUTS.iter().enumerate().map(|(i, cut)| (place(i), cut.to_string())).collect(),
        lines: std::iter::once(first).chain(others).collect(),
        mark: None,
    })
}

/// Returns the position of a rank. Ranks have equal distances, because the first few matter most.
fn place(index: usize) -> f64 {
    (index as f64 + 0.5) / CUTS.len() as f64
}

fn recall_line(name: &str, colour: &'static str, measured: &Measured) -> Line {
    let estimates: Vec<Estimate> =
        CUTS.iter().filter_map(|cut| measured.get(Measure::Recall(*cut))).collect();
    let points = estimates.iter().enumerate().map(|(i, e)| (place(i), e.value)).collect();
    let bounds = estimates.iter().filter_map(|estimate| estimate.interval);
    Line {
        name: name.to_owned(),
        colour,
        points,
        band: bounds.map(|interval| (interval.low, interval.high)).collect(),
        dots: false,
    }
}

fn abstention(report: &Report, held: &Abstention) -> Chart {
    let line = |name: &str, colour, of: fn(&Point) -> f64| Line {
        name: name.to_owned(),
        colour,
        points: held.curve.iter().map(|point| (point.threshold, of(point))).collect(),
        band: Vec::new(),
        dots: false,
    };
    let threshold = report.router.threshold;
    Chart {
        title: format!("Abstention, AUC {:.3}", held.auc.value),
        across: "threshold of the best overlap",
        up: "share of the queries",
        ticks: Vec::new(),
        lines: vec![
            line("false accepts (need no tool)", OTHER, |point| point.false_accepts),
            line("false rejects (need one)", OURS, |point| point.false_rejects),
        ],
        mark: Some((f64::from(threshold), format!("router.threshold {threshold}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn what_was_measured_is_drawn() {
        let names =
            |report: &Report| plots(report).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(&example()), ["recall.svg", "abstention.svg"]);
        let unlabelled = Report { metrics: None, abstention: None, ..example() };
        assert!(plots(&unlabelled).is_empty());
        let [(_, recall), (_, abstention)] = &plots(&example())[..] else { panic!("two") };
        assert!(recall.contains("Recall over 2 labelled queries") && recall.contains("<polygon"));
        // At the second threshold of three, 0.5, false accepts are 0.3 and false rejects 0.1.
        assert!(abstention.contains("340.0,272.0") && abstention.contains("340.0,328.0"));
        assert!(abstention.contains("AUC 0.750") && abstention.contains("router.threshold 0.28"));
    }
}
