//! Rules that cut a ranking, and their scores over queries.

use super::cases::{Case, Judged};
use toolgate_core::policy::Learned;
use toolgate_routing::router::ranking::cut::{self, Bar};
use toolgate_routing::router::ranking::level::Level;

/// Rule that cuts a ranking, in addition to `top_k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Lower bound of each tool's overlap (Tool Attention's rule).
    Threshold(f32),
    /// Lower bounds of the query's best overlap, and of a tool's score as a share of the best score.
    Ratio {
        /// Lower bound of the query's best overlap, a cosine. Below it no tool is chosen, except tools that the query
        /// names.
        abstain_below: f32,
        /// Lower bound of a tool's score as a share of the best score, 0 to 1.
        ratio: f32,
    },
    /// Lower bound of the query's best overlap, and a learned gate for each tool.
    Learned {
        /// Lower bound of the query's best overlap, a cosine. Below it no tool is chosen, except tools that the query
        /// names.
        abstain_below: f32,
        /// Learned gate, with the least chance that a chosen tool must have.
        gate: Learned,
    },
}

impl Rule {
    /// Returns the tools that Route would choose, at most `top_k`.
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

/// Scores of a rule over queries.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scores {
    /// Harmonic mean of precision and recall over all pairs of query and tool, 0 to 1. A tool chosen for a query that
    /// needs none is a wrong pair.
    pub f1: f64,
    /// Share of the right tools that are chosen, over all pairs, 0 to 1.
    pub recall: f64,
    /// Share of the chosen tools that are right, over all pairs, 0 to 1.
    pub precision: f64,
    /// Mean number of tools chosen for a query that needs some.
    pub size: f64,
    /// Share of the queries needing tools that get none, 0 to 1.
    pub false_rejects: f64,
    /// Share of the queries needing no tool that get some, 0 to 1; `None` without such queries.
    pub false_accepts: Option<f64>,
}

/// Counts over queries, from which [`Scores`] are computed.
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
    /// Scores a rule on these queries, with at most `top_k` tools each.
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
    use toolgate_routing::router::ranking::rank::FoundBy;

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
