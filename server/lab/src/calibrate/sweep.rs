//! Search over the values that a rule may have.

use super::cases::Case;
use super::learn;
use super::rule::{Rule, Scores};

/// Number of steps from 0 to 1. One step is .01, as published.
const STEPS: u16 = 100;

/// Targets that the product's rule must meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// Least share of the right tools within `top_k` that must stay, 0 to 1.
    pub kept: f64,
    /// Largest share of the queries needing tools that may get none, 0 to 1.
    pub false_rejects: f64,
}

/// Settings of the search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    pub(super) top_k: usize,
    pub(super) aim: Aim,
}

impl Sweep {
    /// Returns each threshold from 0 to 1 with its F1.
    pub(super) fn curve(&self, cases: &[&Case]) -> Vec<(f32, f64)> {
        let f1 = |at: f32| Scores::of(&Rule::Threshold(at), cases, self.top_k).f1;
        steps().map(|at| (at, f1(at))).collect()
    }

    /// Returns the threshold with the best F1. If several are equal, the lowest wins, because it refuses least.
    pub(super) fn threshold(&self, cases: &[&Case]) -> Rule {
        let mut best = (0.0, f64::NEG_INFINITY);
        for (at, f1) in self.curve(cases) {
            if f1 > best.1 {
                best = (at, f1);
            }
        }
        Rule::Threshold(best.0)
    }

    /// Returns the highest level that keeps false rejects within the aim, with the highest ratio that keeps the share
    /// of right tools that the aim demands.
    pub(super) fn ratio(&self, cases: &[&Case]) -> Rule {
        let needing = needing(cases);
        let abstain_below = self.level(&needing);
        let rule = |ratio| Rule::Ratio { abstain_below, ratio };
        let keeps = self.keeps(&needing, abstain_below);
        // The ratio of a policy must be above 0.
        let ratio = steps().skip(1).take_while(|ratio| keeps(&rule(*ratio))).last();
        rule(ratio.unwrap_or(1.0 / f32::from(STEPS)))
    }

    /// Trains a gate on these queries, and sets the highest least chance that keeps the share of right tools that the
    /// aim demands.
    pub(super) fn learned(&self, cases: &[&Case]) -> Rule {
        let needing = needing(cases);
        let abstain_below = self.level(&needing);
        let trained = learn::train(cases, self.top_k);
        let rule = |least| Rule::Learned { abstain_below, gate: trained.asking(least) };
        let keeps = self.keeps(&needing, abstain_below);
        let least = steps().take_while(|least| keeps(&rule(*least))).last();
        rule(least.unwrap_or(0.0))
    }

    /// Returns the highest level that keeps false rejects within the aim.
    fn level(&self, needing: &[&Case]) -> f32 {
        let rejected = |level| Scores::of(&everything(level), needing, self.top_k).false_rejects;
        let allowed = |level: &f32| rejected(*level) <= self.aim.false_rejects;
        steps().take_while(allowed).last().unwrap_or(0.0)
    }

    /// Returns a check that is true if a rule keeps as many of the right tools as the aim demands.
    fn keeps<'a>(&self, needing: &'a [&Case], level: f32) -> impl Fn(&Rule) -> bool + use<'a> {
        let top_k = self.top_k;
        let wanted = self.aim.kept * Scores::of(&everything(level), needing, top_k).recall;
        move |rule| Scores::of(rule, needing, top_k).recall >= wanted
    }
}

/// Returns the rule that takes the first `top_k` candidates of each query that reaches the level.
fn everything(abstain_below: f32) -> Rule {
    Rule::Ratio { abstain_below, ratio: 0.0 }
}

fn needing<'a>(cases: &[&'a Case]) -> Vec<&'a Case> {
    cases.iter().copied().filter(|case| case.needs_tools()).collect()
}

fn steps() -> impl Iterator<Item = f32> {
    (0..=STEPS).map(|step| f32::from(step) / f32::from(STEPS))
}
