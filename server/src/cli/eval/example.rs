//! A made-up report for the tests of the report formats.

use std::time::Duration;

use toolgate_config::RouterConfig;
use toolgate_lab::eval::Report;
use toolgate_lab::eval::abstention::{Abstention, Point};
use toolgate_lab::eval::bootstrap::{Bootstrap, Estimate, Interval};
use toolgate_lab::eval::comparison::{Comparison, Row};
use toolgate_lab::eval::embeddings::Batches;
use toolgate_lab::eval::failures::{Failure, Failures};
use toolgate_lab::eval::fits::FitRow;
use toolgate_lab::eval::latency::Latency;
use toolgate_lab::eval::measured::{Group, Measured};
use toolgate_lab::eval::metrics::Measure;
use toolgate_lab::eval::report::{Counts, Times, TokenTax};

fn estimate(value: f64) -> Estimate {
    Estimate { value, interval: Some(Interval { low: value / 2.0, high: value * 1.25 }) }
}

fn measured(measures: &[Measure], values: &[f64]) -> Measured {
    let means = measures.iter().zip(values).map(|(measure, value)| (*measure, estimate(*value)));
    Measured { queries: 2, means: means.collect() }
}

fn comparison() -> Comparison {
    let interval = Some(Interval { low: -0.01, high: 0.11 });
    let row = Row {
        measure: Measure::Recall(1),
        this: 0.25,
        other: 0.2,
        difference: Estimate { value: 0.05, interval },
        p: 0.125,
    };
    Comparison { name: "plain".to_owned(), rows: vec![row] }
}

fn abstention() -> Abstention {
    let curve = [(0.0, 1.0, 0.0), (0.5, 0.3, 0.1), (1.0, 0.0, 1.0)];
    let point = |(threshold, false_accepts, false_rejects)| Point {
        threshold,
        false_accepts,
        false_rejects,
    };
    let curve = curve.map(point).to_vec();
    Abstention { labelled: 2, no_tool: 1, auc: estimate(0.75), curve }
}

fn counts() -> Counts {
    Counts {
        servers: 1,
        tools: 1_200,
        queries: 3,
        labelled: 2,
        no_tool: 1,
        truncated_queries: 1,
        ..Counts::default()
    }
}

fn latency() -> Latency {
    let batches = |micros| Batches { texts: 1, time: Duration::from_micros(micros) };
    let queries = batches(400);
    let summaries = batches(900);
    Latency { p50: 80.0, p90: 120.0, p99: 300.0, max: 900.0, queries, summaries }
}

pub(super) fn example() -> Report {
    let values = [0.25, 0.5, 0.75, 0.8, 0.8, 0.625, 0.4, 6.2, 0.2, 0.7, 0.5, 0.1, 1_234.5];
    let metrics = measured(&Measure::LABELLED, &values);
    let labelled = Some(metrics.clone());
    Report {
        encoder: "0123456789abcdef".into(),
        router: RouterConfig::default(),
        counts: counts(),
        bootstrap: Bootstrap::default(),
        metrics: Some(metrics),
        no_tool: Some(measured(&Measure::NO_TOOL, &[0.3])),
        baseline: None,
        clauses: None,
        ablations: Vec::new(),
        comparisons: vec![comparison()],
        abstention: Some(abstention()),
        fits: vec![FitRow {
            fit: "ambiguous",
            labelled: 2,
            first: Some(estimate(0.5)),
            among: Some(Estimate { value: 0.75, interval: None }),
            no_tool: 1,
        }],
        failures: Failures { counts: [(Failure::StrictCut, 2), (Failure::PoorText, 5)].into() },
        kinds: vec![Group { name: "single".to_owned(), labelled, no_tool: None }],
        languages: Vec::new(),
        visible: Vec::new(),
        contexts: Vec::new(),
        conversation: None,
        tokens: TokenTax { schemas: 240_000, largest_schema: 900, pool: 36_000 },
        latency: latency(),
        times: Times {
            check: Duration::from_millis(300),
            embed: Duration::from_millis(1_200),
            whole: Duration::from_millis(1_600),
        },
        rejected: Vec::new(),
        renamed: Vec::new(),
    }
}
