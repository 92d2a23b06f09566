//! Results of a calibration, as text and as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::output::STRONG;
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped};
use toolgate_core::policy::FEATURES;
use toolgate_lab::calibrate::rule::{Rule, Scores};
use toolgate_lab::calibrate::{Calibrated, FittedRule};

/// Formats the whole report, coloured.
pub(super) fn report(found: &Calibrated, policy: &str, out: Option<&Path>) -> String {
    let columns = [
        Column::Left("RULE"),
        Column::Left("QUERIES"),
        Column::Right("F1"),
        Column::Right("RECALL"),
        Column::Right("PRECISION"),
        Column::Right("TOOLS"),
        Column::Right("FALSE REJECTS"),
        Column::Right("FALSE ACCEPTS"),
    ];
    let row = |name: String, of: &str, scores: &Scores| {
        let numbers = [scores.f1, scores.recall, scores.precision].map(|v| format!("{v:.3}"));
        let accepts = scores.false_accepts.map_or_else(|| "-".into(), |v| format!("{v:.3}"));
        let rest = [format!("{:.1}", scores.size), format!("{:.3}", scores.false_rejects), accepts];
        [name, of.to_owned()].into_iter().chain(numbers).chain(rest).collect()
    };
    let both = |found: &FittedRule| {
        [
            row(named(&found.rule), "all", &found.fitted),
            row(String::new(), "held out", &found.held_out),
        ]
    };
    let (now, scores) = &found.now;
    let rows = std::iter::once(row(format!("now: {}", named(now)), "all", scores))
        .chain(both(&found.ratio))
        .chain(found.learned.iter().flat_map(both))
        .chain(both(&found.threshold));
    let then = match out {
        Some(path) => {
            format!("Written to {0}; `toolgate policy set {0}` sets it.\n", path.display())
        }
        None => format!("The policy (--out writes it):\n\n{policy}"),
    };
    format!(
        "{STRONG}{}, {} labelled queries, {} that need no tool{STRONG:#}\n\n{}\n{then}",
        counted(found.pairs, "labelled pair"),
        grouped(found.labelled as u64),
        grouped(found.no_tool as u64),
        render(&columns, rows),
    )
}

/// Formats the report as JSON.
pub(super) fn as_json(found: &Calibrated, policy: &str) -> Value {
    let both = |found: &FittedRule| {
        json!({
            "rule": rule(&found.rule),
            "fitted": scores(&found.fitted),
            "held_out": scores(&found.held_out),
        })
    };
    let point = |(at, f1): &(f32, f64)| json!({"threshold": decimal(*at), "f1": f1});
    json!({
        "labelled_pairs": found.pairs,
        "labelled_queries": found.labelled,
        "no_tool_queries": found.no_tool,
        "now": {"rule": rule(&found.now.0), "fitted": scores(&found.now.1)},
        "ratio": both(&found.ratio),
        "threshold": both(&found.threshold),
        "learned": found.learned.as_ref().map(both),
        "learned_is_worth_it": found.worthy().is_some(),
        "curve": found.curve.iter().map(point).collect::<Vec<_>>(),
        "policy": policy,
    })
}

fn named(rule: &Rule) -> String {
    match rule {
        Rule::Threshold(at) => format!("threshold {at:.2}"),
        Rule::Ratio { abstain_below, ratio } => {
            format!("level {abstain_below:.2}, ratio {ratio:.2}")
        }
        Rule::Learned { abstain_below, gate } => {
            format!("level {abstain_below:.2}, learned {:.2}", gate.least)
        }
    }
}

fn rule(rule: &Rule) -> Value {
    match rule {
        Rule::Threshold(at) => json!({"threshold": decimal(*at)}),
        Rule::Ratio { abstain_below, ratio } => {
            json!({"abstain_below": decimal(*abstain_below), "ratio": decimal(*ratio)})
        }
        Rule::Learned { abstain_below, gate } => json!({
            "abstain_below": decimal(*abstain_below),
            "least": decimal(gate.least),
            "bias": gate.bias,
            "weights": FEATURES.iter().zip(gate.weights)
                .map(|(name, weight)| ((*name).to_owned(), json!(weight)))
                .collect::<serde_json::Map<_, _>>(),
        }),
    }
}

/// Rounds to hundredths as a decimal number. A plain conversion to `f64` would show the binary fraction.
fn decimal(value: f32) -> f64 {
    (f64::from(value) * 100.0).round() / 100.0
}

fn scores(scores: &Scores) -> Value {
    json!({
        "f1": scores.f1,
        "recall": scores.recall,
        "precision": scores.precision,
        "tools": scores.size,
        "false_rejects": scores.false_rejects,
        "false_accepts": scores.false_accepts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_in_a_table_and_in_json() {
        let scores = Scores { f1: 0.5, recall: 0.75, size: 2.25, ..Scores::default() };
        let found = |rule| FittedRule { rule, fitted: scores, held_out: scores };
        let ratio = Rule::Ratio { abstain_below: 0.31, ratio: 0.6 };
        let calibrated = Calibrated {
            pairs: 120,
            labelled: 100,
            no_tool: 0,
            now: (Rule::Ratio { abstain_below: 0.28, ratio: 0.5 }, scores),
            threshold: found(Rule::Threshold(0.29)),
            ratio: found(ratio),
            learned: None,
            curve: vec![(0.29, 0.5)],
        };
        let policy = calibrated.policy(&ratio);
        let text = report(&calibrated, &policy, None);
        let text = anstream::adapter::strip_str(&text).to_string();
        for part in [
            "120 labelled pairs",
            "now: level 0.28, ratio 0.50",
            "level 0.31, ratio 0.60",
            "held out",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("defaults:\n  abstain_below: 0.31\n  ratio: 0.60\n"), "{text}");
        let json = as_json(&calibrated, &policy);
        assert_eq!(json["threshold"]["rule"]["threshold"], 0.29);
        assert_eq!(json["ratio"]["held_out"]["false_accepts"], Value::Null);
        let written = report(&calibrated, &policy, Some(Path::new("p.yaml")));
        assert!(written.contains("`toolgate policy set p.yaml`"), "{written}");
    }
}
