//! Looks through the values that a rule may have.

use super::cases::Case;
use super::rule::{Rule, Scores};

/// Steps from 0 to 1: .01, as published.
const STEPS: u16 = 100;

/// What the product's rule is to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// The share of the right tools within `top_k` that stay, 0 to 1.
    pub kept: f64,
    /// The share of queries needing tools that may get none, 0 to 1.
    pub false_rejects: f64,
}

/// How values are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    pub(super) top_k: usize,
    pub(super) aim: Aim,
}

impl Sweep {
    /// The F1 of each threshold, from 0 to 1.
    pub(super) fn curve(&self, cases: &[&Case]) -> Vec<(f32, f64)> {
        let f1 = |at: f32| Scores::of(&Rule::Threshold(at), cases, self.top_k).f1;
        steps().map(|at| (at, f1(at))).collect()
    }

    /// The threshold with the best F1; the lowest of equals, which refuses least.
    pub(super) fn threshold(&self, cases: &[&Case]) -> Rule {
        let mut best = (0.0, f64::NEG_INFINITY);
        for (at, f1) in self.curve(cases) {
            if f1 > best.1 {
                best = (at, f1);
            }
        }
        Rule::Threshold(best.0)
    }

    /// The highest level that rejects no more than the aim allows, and the highest ratio that keeps what it asks.
    pub(super) fn ratio(&self, cases: &[&Case]) -> Rule {
        let needing: Vec<&Case> = cases.iter().copied().filter(|case| case.needs_tools()).collect();
        let scores = |abstain_below, ratio| {
            Scores::of(&Rule::Ratio { abstain_below, ratio }, &needing, self.top_k)
        };
        let allowed = |level: &f32| scores(*level, 0.0).false_rejects <= self.aim.false_rejects;
        let abstain_below = steps().take_while(allowed).last().unwrap_or(0.0);
        let wanted = self.aim.kept * scores(abstain_below, 0.0).recall;
        let keeps = |ratio: &f32| scores(abstain_below, *ratio).recall >= wanted;
        // A policy's ratio is above 0.
        let ratio = steps().skip(1).take_while(keeps).last().unwrap_or(1.0 / f32::from(STEPS));
        Rule::Ratio { abstain_below, ratio }
    }
}

fn steps() -> impl Iterator<Item = f32> {
    (0..=STEPS).map(|step| f32::from(step) / f32::from(STEPS))
}
