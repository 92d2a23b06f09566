//! Where the ranking is cut: which candidates are near enough to be chosen.

use super::learned::Best;
use super::level::Level;
use super::query::Options;
use super::rank::{Candidate, Embedded, FoundBy, Parts};
use crate::gate::verdict::RefusalCode;
use crate::shard::snapshot::Snapshot;
use toolgate_core::policy::Learned;

/// The share of the level that a tool's own overlap must have, unless it has [`WORD_SHARE`]: its score is one on a scale
/// that begins with the worst that was found and ends with the best, and says nothing of how much either is. Of people's
/// requests over the shipped catalogs these leave out 1% of the tools, and recall of the sets stays as it is; at .8 of the
/// level, or without words, it falls by .4 to 1.1 points.
const OWN_SHARE: f32 = 0.75;

/// The part of an intent's words, each weighed by its rarity, that is evidence enough.
const WORD_SHARE: f32 = 0.5;

/// What cuts a ranking, whoever's it is: where a calibration tries rules, it tries those that Route goes by.
#[derive(Debug, Clone, Copy)]
pub enum Rule<'a> {
    /// Each tool's overlap must reach it (Tool Attention's rule).
    Threshold(f32),
    /// The best overlap must reach the level, and a tool's score this share of the best one's; and the tool must have
    /// something of its own to say for it: an overlap that is not far below the level, or much of the intent's words.
    Ratio(f32),
    /// The best overlap must reach the level, and a tool's chance what the gate asks.
    Learned(&'a Learned),
}

/// What a candidate that does not pass falls short of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shortfall {
    /// The threshold that the policy has for the tool.
    OwnThreshold(f32),
    /// The threshold for each tool.
    Threshold(f32),
    /// No tool fits: the best overlap is below the level.
    Level {
        /// The best overlap of the turn.
        best: f32,
        /// The level.
        level: f32,
    },
    /// Its score is below this share of the best one's.
    Ratio(f32),
    /// Its chance is below what the policy's learned gate asks.
    LearnedGate,
    /// It has neither an overlap near the level nor enough of the intent's words.
    OwnEvidence {
        /// The overlap that would be enough.
        least: f32,
    },
}

impl Shortfall {
    /// Returns the code that the wire has for it.
    #[must_use]
    pub fn code(self) -> RefusalCode {
        match self {
            Self::OwnThreshold(_) | Self::Threshold(_) | Self::Level { .. } => {
                RefusalCode::BelowThreshold
            }
            Self::Ratio(_) | Self::LearnedGate | Self::OwnEvidence { .. } => {
                RefusalCode::BelowCutoff
            }
        }
    }

    /// Returns what is said of a tool of this overlap.
    #[must_use]
    pub fn message(self, overlap: f32) -> String {
        match self {
            Self::OwnThreshold(least) => format!(
                "overlap {overlap:.3} is below the threshold of {least:.3} that the policy has for it"
            ),
            Self::Threshold(least) => {
                format!("overlap {overlap:.3} is below the threshold of {least:.3} for each tool")
            }
            Self::Level { best, level } => format!(
                "no tool fits: the best overlap, {best:.3}, is below the level of {level:.3}"
            ),
            Self::Ratio(ratio) => format!(
                "its score is too far below the best one's: router.ratio, or the policy's ratio, asks for {ratio:.2} of it"
            ),
            Self::LearnedGate => {
                "its chance is below what the policy's learned gate asks".to_owned()
            }
            Self::OwnEvidence { least } => format!(
                "little speaks for it but that others are worse: its overlap is below {least:.3}, {OWN_SHARE} of the level \
                 of \"no tool fits\", and it has less than half of the intent's words"
            ),
        }
    }
}

/// A rule held against one turn's candidates.
#[derive(Debug, Clone, Copy)]
pub struct Bar<'a> {
    rule: Rule<'a>,
    level: Level,
    best: Best,
}

impl<'a> Bar<'a> {
    /// For candidates the best of which is `best`.
    #[must_use]
    pub fn new(rule: Rule<'a>, level: Level, best: Best) -> Self {
        Self { rule, level, best }
    }

    /// Whether a candidate is near enough. One that an intent names always is.
    #[must_use]
    pub fn passes(&self, candidate: &Candidate) -> bool {
        self.shortfall(candidate).is_none()
    }

    /// Returns what a candidate falls short of; `None` for one that is near enough.
    fn shortfall(&self, candidate: &Candidate) -> Option<Shortfall> {
        if candidate.found_by == FoundBy::Name {
            return None;
        }
        // Of an untrusted tool, which the best is not taken from, its own overlap is enough.
        let own = self.level.is_reached_by(candidate.parts.nearest);
        let is_reached = own || self.level.is_reached_by(self.best.nearest);
        let no_tool_fits = Shortfall::Level { best: self.best.nearest, level: self.level.0 };
        let shortfall = match self.rule {
            Rule::Threshold(least) if candidate.overlap >= least => return None,
            Rule::Threshold(least) => Shortfall::Threshold(least),
            Rule::Ratio(_) | Rule::Learned(_) if !is_reached => no_tool_fits,
            Rule::Ratio(ratio) => {
                // Each intent's best is chosen, however it compares with another intent's.
                let is_near_best = candidate.score >= ratio * self.best.score;
                let speaks = candidate.leads || self.speaks_for(candidate);
                if candidate.leads && own || is_near_best && speaks {
                    return None;
                }
                let evidence = Shortfall::OwnEvidence { least: self.own_level().0 };
                if is_near_best { evidence } else { Shortfall::Ratio(ratio) }
            }
            Rule::Learned(gate) if gate.passes(&self.best.features(candidate)) => return None,
            Rule::Learned(_) => Shortfall::LearnedGate,
        };
        Some(shortfall)
    }

    /// Whether there is more for a candidate than that others are worse: padding is not.
    fn speaks_for(&self, candidate: &Candidate) -> bool {
        let Parts { nearest, word_share, .. } = candidate.parts;
        word_share >= WORD_SHARE || self.own_level().is_reached_by(nearest)
    }

    /// Returns the level that is asked of a tool's own overlap.
    fn own_level(&self) -> Level {
        Level(OWN_SHARE * self.level.0)
    }
}

/// The cut of one turn's candidates.
///
/// With a threshold that somebody named, each tool's overlap must reach it. With the default, the best overlap must
/// reach a [`Level`], or no tool fits; then those are chosen whose score is at least [`Options::ratio`] of the best
/// one's. A threshold that is right for one catalog is wrong for the next, a share of the best is not:
/// docs/evaluation.md holds both against labelled sets.
pub struct Cut<'a> {
    snapshot: &'a Snapshot,
    by_words: bool,
    bar: Bar<'a>,
}

impl<'a> Cut<'a> {
    /// The cut of these candidates.
    #[must_use]
    pub fn of(
        snapshot: &'a Snapshot,
        (embedded, options): (&Embedded<'_>, &'a Options),
        level: Level,
        candidates: &[Candidate],
    ) -> Self {
        let rule = match (options.ratio, &options.learned) {
            (None, _) => Rule::Threshold(options.threshold),
            (Some(_), Some(gate)) => Rule::Learned(gate),
            (Some(ratio), None) => Rule::Ratio(ratio),
        };
        let bar = Bar::new(rule, level, best(snapshot, candidates));
        Self { snapshot, by_words: embedded.is_words_only(snapshot), bar }
    }

    /// Whether a candidate is near enough. A threshold that the policy has for a tool comes before the rule.
    #[must_use]
    pub fn passes(&self, candidate: &Candidate) -> bool {
        let near_enough = || self.bar.passes(candidate);
        self.by_words
            || self.own(candidate).map_or_else(near_enough, |least| candidate.overlap >= least)
    }

    /// Whether the policy keeps a candidate out by a threshold of its own.
    #[must_use]
    pub fn is_barred(&self, candidate: &Candidate) -> bool {
        !self.by_words && self.own(candidate).is_some_and(|least| candidate.overlap < least)
    }

    /// Returns what a candidate falls short of: the rule that leaves it out. `None` for one that passes.
    #[must_use]
    pub fn shortfall(&self, candidate: &Candidate) -> Option<Shortfall> {
        if self.by_words {
            return None;
        }
        match self.own(candidate) {
            Some(least) if candidate.overlap < least => Some(Shortfall::OwnThreshold(least)),
            Some(_) => None,
            None => self.bar.shortfall(candidate),
        }
    }

    fn own(&self, candidate: &Candidate) -> Option<f32> {
        let own = self.snapshot.tool(candidate.slot).threshold;
        own.filter(|_| candidate.found_by != FoundBy::Name)
    }
}

/// The best of tools that are not untrusted; of all where there are no others.
fn best(snapshot: &Snapshot, candidates: &[Candidate]) -> Best {
    let is_untrusted = |one: &Candidate| snapshot.tool(one.slot).untrusted;
    let others = || candidates.iter().filter(|one| !is_untrusted(one));
    if others().any(|one| one.found_by.is_by_meaning()) {
        Best::of(others())
    } else {
        Best::of(candidates.iter())
    }
}

/// Puts each intent's best before the rest, so that a turn with several intents covers all of them. The best stay
/// first within both.
pub fn leaders_first(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|candidate| !candidate.leads);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::rank::Recent;
    use toolgate_core::policy::Features;

    fn candidate([score, nearest, word_share]: [f32; 3], leads: bool) -> Candidate {
        Candidate {
            slot: 0,
            overlap: nearest,
            score,
            found_by: FoundBy::Overlap,
            parts: Parts { nearest, word_share, ..Parts::default() },
            leads,
            recent: Recent::default(),
            from_context: false,
        }
    }

    #[test]
    fn what_is_only_less_bad_than_others_is_no_padding() {
        let best = candidate([0.9, 0.5, 0.9], true);
        let passes = |level, one: &Candidate| {
            Bar::new(Rule::Ratio(0.5), Level(level), Best::of([&best].into_iter())).passes(one)
        };
        assert!(passes(0.4, &best));
        assert!(passes(0.4, &candidate([0.6, 0.31, 0.0], false)), "near enough by itself");
        assert!(passes(0.4, &candidate([0.6, 0.1, 0.5], false)), "it has half of the words");
        assert!(passes(0.4, &candidate([0.6, 0.1, 0.0], true)), "the best of a clause");
        assert!(!passes(0.4, &candidate([0.6, 0.29, 0.4], false)), "neither");
        assert!(!passes(0.4, &candidate([0.4, 0.5, 0.9], false)), "too far below the best");
        // Where no level is asked, as of intents in other scripts, nothing is asked of each tool either.
        assert!(passes(Level::NONE.0, &candidate([0.6, -0.5, 0.0], false)));
    }

    #[test]
    fn the_rule_that_leaves_a_tool_out_is_told() {
        let best = candidate([0.9, 0.5, 0.9], true);
        let shortfall = |rule, level, one: &Candidate| {
            let bar = Bar::new(rule, Level(level), Best::of([&best].into_iter()));
            bar.shortfall(one).expect("it falls short")
        };
        let far = candidate([0.4, 0.3, 0.0], false);
        let said = |rule, level, one: &Candidate| shortfall(rule, level, one).message(one.overlap);
        let threshold = said(Rule::Threshold(0.4), 0.2, &far);
        assert_eq!(threshold, "overlap 0.300 is below the threshold of 0.400 for each tool");
        let level = said(Rule::Ratio(0.5), 0.6, &far);
        assert_eq!(level, "no tool fits: the best overlap, 0.500, is below the level of 0.600");
        assert!(said(Rule::Ratio(0.5), 0.4, &far).contains("router.ratio"));
        let padding = candidate([0.6, 0.1, 0.4], false);
        assert!(said(Rule::Ratio(0.5), 0.4, &padding).contains("its overlap is below 0.300"));
        let strict = Learned { weights: Features::default(), bias: -100.0, least: 0.5 };
        assert!(said(Rule::Learned(&strict), 0.4, &padding).contains("learned gate"));
        assert!(said(Rule::Learned(&strict), 0.6, &padding).starts_with("no tool fits"));
    }
}
