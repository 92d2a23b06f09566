//! Rules that cut a ranking, and what comes of them.

use super::cases::{Case, Judged};
use toolgate_core::policy::Learned;
use toolgate_routing::router::cut::{self, Bar};
use toolgate_routing::router::level::Level;

/// Where a ranking is cut, beside `top_k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Each tool's overlap must reach it (Tool Attention's rule).
    Threshold(f32),
    /// The best overlap must reach a level, and a tool's score a share of the best one's.
    Ratio {
        /// The level.
        abstain_below: f32,
        /// The share.
        ratio: f32,
    },
    /// The best overlap must reach a level, and a tool's chance what the gate asks.
    Learned {
        /// The level.
        abstain_below: f32,
        /// The gate.
        gate: Learned,
    },
}

impl Rule {
    /// What Route would choose, `top_k` at most.
    fn chosen<'a>(&'a self, case: &'a Case, top_k: usize) -> impl Iterator<Item = &'a Judged> {
        let (rule, level) = match self {
            Self::Threshold(least) => (cut::Rule::Threshold(*least), 0.0),
            Self::Ratio { abstain_below, ratio } => (cut::Rule::Ratio(*ratio), *abstain_below),
            Self::Learned { abstain_below, gate } => (cut::Rule::Learned(gate), *abstain_below),
        };
        let level = if case.has_level { Level(level) } else { Level::NONE };
        let bar = Bar::new(rule, level, case.best);
        case.candidates.iter().filter(move |one| bar.passes(&one.candidate)).take(top_k)
    }
}

/// What a rule comes to over queries.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scores {
    /// The harmonic mean of precision and recall over all pairs of query and tool; a tool for a query that needs
    /// none is a wrong pair.
    pub f1: f64,
    /// The share of the right tools that are chosen, over all pairs.
    pub recall: f64,
    /// The share of the chosen tools that are right, over all pairs.
    pub precision: f64,
    /// Tools chosen for a query that needs some, on average.
    pub size: f64,
    /// The share of queries that need tools and get none.
    pub false_rejects: f64,
    /// The share of queries that need no tool and get some; `None` without such queries.
    pub false_accepts: Option<f64>,
}

/// Counts over queries, from which [`Scores`] are made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    right: usize,
    chosen: usize,
    relevant: usize,
    chosen_when_needed: usize,
    needing: usize,
    rejected: usize,
    not_needing: usize,
    accepted: usize,
}

impl Tally {
    pub(super) fn count(&mut self, rule: &Rule, case: &Case, top_k: usize) {
        let chosen: Vec<&Judged> = rule.chosen(case, top_k).collect();
        self.right += chosen.iter().filter(|one| one.is_relevant).count();
        self.chosen += chosen.len();
        self.relevant += case.relevant;
        if case.needs_tools() {
            self.needing += 1;
            self.chosen_when_needed += chosen.len();
            self.rejected += usize::from(chosen.is_empty());
        } else {
            self.not_needing += 1;
            self.accepted += usize::from(!chosen.is_empty());
        }
    }

    pub(super) fn scores(&self) -> Scores {
        let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        Scores {
            f1: share(2 * self.right, self.chosen + self.relevant),
            recall: share(self.right, self.relevant),
            precision: share(self.right, self.chosen),
            size: share(self.chosen_when_needed, self.needing),
            false_rejects: share(self.rejected, self.needing),
            false_accepts: (self.not_needing > 0).then(|| share(self.accepted, self.not_needing)),
        }
    }
}

impl Scores {
    /// What a rule comes to.
    #[must_use]
    pub fn of(rule: &Rule, cases: &[&Case], top_k: usize) -> Self {
        let mut tally = Tally::default();
        cases.iter().for_each(|case| tally.count(rule, case, top_k));
        tally.scores()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::samples::{case, judged};
    use toolgate_routing::router::rank::FoundBy;

    #[test]
    fn by_hand() {
        let asked = vec![judged(0.4, 0.9, true), judged(0.5, 0.6, false), judged(0.2, 0.3, true)];
        let asked = case(asked, 3);
        let chat = case(vec![judged(0.3, 0.8, false)], 0);
        let scores = |rule| Scores::of(&rule, &[&asked, &chat], 10);
        let threshold = scores(Rule::Threshold(0.3));
        assert_eq!((threshold.size, threshold.false_accepts), (2.0, Some(1.0)));
        assert!((threshold.f1 - 2.0 / 6.0).abs() < 1e-9, "1 right of 3 chosen, 3 wanted");
        let ratio = scores(Rule::Ratio { abstain_below: 0.35, ratio: 0.6 });
        assert_eq!((ratio.size, ratio.false_accepts, ratio.precision), (2.0, Some(0.0), 0.5));
        let none = scores(Rule::Ratio { abstain_below: 0.6, ratio: 0.5 });
        assert_eq!((none.false_rejects, none.f1), (1.0, 0.0));
        let one = Scores::of(&Rule::Threshold(0.0), &[&asked], 1);
        assert_eq!((one.size, one.precision, one.false_accepts), (1.0, 1.0, None));
    }

    #[test]
    fn what_route_would_send_is_counted() {
        let rule = Rule::Ratio { abstain_below: 0.35, ratio: 0.9 };
        let size = |case: &Case| Scores::of(&rule, &[case], 10).size;
        let best = judged(0.5, 1.0, true);
        let mut other = judged(0.4, 0.2, true);
        assert_eq!(size(&case(vec![best, other], 2)), 1.0);
        other.candidate.leads = true;
        assert_eq!(size(&case(vec![best, other], 2)), 2.0, "the best of a clause");
        other.candidate.parts.nearest = 0.3;
        assert_eq!(
            size(&case(vec![best, other], 2)),
            1.0,
            "the best of a clause that nothing fits"
        );
        other.candidate.found_by = FoundBy::Name;
        assert_eq!(size(&case(vec![best, other], 2)), 2.0, "the query names it");
        let foreign = Case { has_level: false, ..case(vec![judged(0.1, 1.0, true)], 1) };
        assert_eq!(size(&foreign), 1.0, "no level is asked of it");
    }
}
