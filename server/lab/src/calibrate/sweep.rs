//! Looks through the values that a rule may have.

use super::cases::Case;
use super::learn;
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
        let needing = needing(cases);
        let abstain_below = self.level(&needing);
        let rule = |ratio| Rule::Ratio { abstain_below, ratio };
        let keeps = self.keeps(&needing, abstain_below);
        // A policy's ratio is above 0.
        let ratio = steps().skip(1).take_while(|ratio| keeps(&rule(*ratio))).last();
        rule(ratio.unwrap_or(1.0 / f32::from(STEPS)))
    }

    /// A gate trained on these queries, which asks as much as keeps what the aim does.
    pub(super) fn learned(&self, cases: &[&Case]) -> Rule {
        let needing = needing(cases);
        let abstain_below = self.level(&needing);
        let trained = learn::train(cases, self.top_k);
        let rule = |least| Rule::Learned { abstain_below, gate: trained.asking(least) };
        let keeps = self.keeps(&needing, abstain_below);
        let least = steps().take_while(|least| keeps(&rule(*least))).last();
        rule(least.unwrap_or(0.0))
    }

    /// The highest level that rejects no more than the aim allows.
    fn level(&self, needing: &[&Case]) -> f32 {
        let rejected = |level| Scores::of(&everything(level), needing, self.top_k).false_rejects;
        let allowed = |level: &f32| rejected(*level) <= self.aim.false_rejects;
        steps().take_while(allowed).last().unwrap_or(0.0)
    }

    /// Whether a rule keeps as many of the right tools as the aim asks.
    fn keeps<'a>(&self, needing: &'a [&Case], level: f32) -> impl Fn(&Rule) -> bool + use<'a> {
        let top_k = self.top_k;
        let wanted = self.aim.kept * Scores::of(&everything(level), needing, top_k).recall;
        move |rule| Scores::of(rule, needing, top_k).recall >= wanted
    }
}

/// The first `top_k` of whatever reaches the level.
fn everything(abstain_below: f32) -> Rule {
    Rule::Ratio { abstain_below, ratio: 0.0 }
}

fn needing<'a>(cases: &[&'a Case]) -> Vec<&'a Case> {
    cases.iter().copied().filter(|case| case.needs_tools()).collect()
}

fn steps() -> impl Iterator<Item = f32> {
    (0..=STEPS).map(|step| f32::from(step) / f32::from(STEPS))
}
