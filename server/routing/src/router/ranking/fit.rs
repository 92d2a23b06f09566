//! Fit of the best tool of a turn: it stands out, others fit about as well, or no tool fits. An agent that knows this
//! can ask the user instead of guessing.

use crate::router::ranking::rank::{Candidate, FoundBy};

/// Share of the best score within which other tools fit about as well. Of 250 intents of people over the shipped
/// catalogs with packs, 18% are ambiguous. In ambiguous ones the first tool is right in 56%, and one of the contenders
/// in 80%; in clear ones the first is right in 84%. For 735 prompts for Azure's tools, these figures are 14%, 63%, 95%
/// and 94%. Without packs, or with tools that say little (`MetaTool`), the first is right in 47% and 61% of the clear
/// ones. The fit is therefore not a probability.
const MARGIN: f32 = 0.05;

/// Maximum number of contenders that are reported.
const CONTENDERS_MAX: usize = 5;

/// Fit of the best tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Fit {
    /// Unknown fit: words alone ranked.
    #[default]
    Unknown,
    /// Best tool that stands out or is named.
    Clear,
    /// Tools that fit about equally, best first.
    Ambiguous(Vec<u32>),
    /// No fitting tool.
    None,
    /// No tool asked for: the message only thanks, greets or takes leave.
    Courtesy,
}

impl Fit {
    /// Computes the fit of candidates, best first. `passes` returns true for a candidate that is near enough.
    #[must_use]
    pub fn of(candidates: &[Candidate], passes: impl Fn(&Candidate) -> bool) -> Self {
        let mut passing = candidates.iter().filter(|candidate| passes(candidate));
        let Some(best) = passing.next() else {
            return Self::None;
        };
        if best.found_by == FoundBy::Name {
            return Self::Clear;
        }
        // The best tool of another intent or clause is no rival: it is wanted as well.
        let rivals = passing
            .take_while(|candidate| candidate.score >= (1.0 - MARGIN) * best.score)
            .filter(|candidate| !candidate.leads);
        let rivals = rivals.map(|candidate| candidate.slot).take(CONTENDERS_MAX - 1);
        let contenders: Vec<u32> = [best.slot].into_iter().chain(rivals).collect();
        if contenders.len() > 1 { Self::Ambiguous(contenders) } else { Self::Clear }
    }

    /// Returns this fit of a turn that asks for nothing: [`Fit::Courtesy`], unless a tool is named.
    #[must_use]
    pub fn or_courtesy(self) -> Self {
        if self == Self::None { Self::Courtesy } else { self }
    }

    /// Returns the fit as one word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Clear => "clear",
            Self::Ambiguous(_) => "ambiguous",
            Self::None => "none",
            Self::Courtesy => "courtesy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::ranking::cut::{Bar, Rule};
    use crate::router::ranking::learned::Best;
    use crate::router::ranking::level::Level;
    use crate::test_catalog;

    /// Returns a candidate that leads if it is the first.
    fn candidate(slot: u32, score: f32) -> Candidate {
        Candidate { leads: slot == 0, ..test_catalog::candidate(slot, score) }
    }

    fn fit(candidates: &[Candidate], level: f32) -> Fit {
        let best = Best::of(candidates.iter());
        let bar = Bar::new(Rule::Ratio(0.5), Level(level), best);
        Fit::of(candidates, |candidate| bar.passes(candidate))
    }

    #[test]
    fn the_best_stands_out_or_has_rivals() {
        let scores = |scores: &[f32]| -> Vec<Candidate> {
            scores.iter().zip(0..).map(|(score, slot)| candidate(slot, *score)).collect()
        };
        assert_eq!(fit(&scores(&[0.9, 0.85]), 0.3), Fit::Clear);
        assert_eq!(fit(&scores(&[0.9, 0.87, 0.86, 0.8]), 0.3), Fit::Ambiguous(vec![0, 1, 2]));
        assert_eq!(fit(&scores(&[0.9; 8]), 0.3), Fit::Ambiguous(vec![0, 1, 2, 3, 4]));
        assert_eq!(fit(&scores(&[0.2, 0.2]), 0.3), Fit::None, "below the level");
        assert_eq!(fit(&[], 0.3), Fit::None);
    }

    #[test]
    fn what_is_named_is_meant_and_another_clause_is_no_rival() {
        let named = Candidate { found_by: FoundBy::Name, ..candidate(0, 0.9) };
        assert_eq!(fit(&[named, candidate(1, 0.9)], 0.3), Fit::Clear);
        let of_another_clause = Candidate { leads: true, ..candidate(1, 0.89) };
        assert_eq!(fit(&[candidate(0, 0.9), of_another_clause], 0.3), Fit::Clear);
    }

    #[test]
    fn a_rival_is_within_a_twentieth_of_the_best_and_passes() {
        let of = |rival: f32| Fit::of(&[candidate(0, 1.0), candidate(1, rival)], |_| true);
        assert_eq!(of(0.951), Fit::Ambiguous(vec![0, 1]));
        assert_eq!(of(0.949), Fit::Clear);
        let all = [candidate(0, 1.0), candidate(1, 0.99), candidate(2, 0.98)];
        assert_eq!(Fit::of(&all, |one| one.slot != 1), Fit::Ambiguous(vec![0, 2]));
        assert_eq!(Fit::of(&all, |one| one.slot != 0), Fit::Ambiguous(vec![1, 2]));
    }

    #[test]
    fn each_fit_has_a_name() {
        let ambiguous = Fit::Ambiguous(vec![1, 2]);
        let fits = [Fit::Unknown, Fit::Clear, ambiguous, Fit::None, Fit::Courtesy];
        assert_eq!(
            fits.map(|fit| fit.name()),
            ["unknown", "clear", "ambiguous", "none", "courtesy"]
        );
        assert_eq!(Fit::default(), Fit::Unknown);
    }
}
