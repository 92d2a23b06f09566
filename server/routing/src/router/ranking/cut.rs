//! Cut of the ranking: it decides which candidates are near enough to be chosen.

use crate::gate::verdict::RefusalCode;
use crate::router::query::{Options, SelectionRule};
use crate::router::ranking::learned::Best;
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::{Candidate, Embedded, FoundBy, Parts};
use crate::shard::snapshot::Snapshot;
use toolgate_core::policy::Learned;

/// Share of the level that a tool's own overlap must reach, unless the tool has [`WORD_SHARE`]. A score is relative:
/// its scale runs from the worst tool found to the best, and it does not show how good either of them is. On people's
/// requests over the shipped catalogs, this share leaves out 1% of the tools and does not change recall of the sets. At
/// .8 of the level, or without the exception for words, recall falls by .4 to 1.1 points.
const OWN_SHARE: f32 = 0.75;

/// Share of an intent's words, weighed by rarity, that is enough evidence for a tool; 0 to 1.
const WORD_SHARE: f32 = 0.5;

/// Rule that cuts a ranking. A calibration tries the same rules that Route uses.
#[derive(Debug, Clone, Copy)]
pub enum Rule<'a> {
    /// Threshold that each tool's overlap must reach (Tool Attention's rule).
    Threshold(f32),
    /// Minimum share of the best score. The best overlap must reach the level, and a tool's score must be at least this
    /// share of the best score. The tool also needs evidence of its own: an overlap not far below the level, or many of
    /// the intent's words. Tools with a reserved place need neither.
    Ratio(f32),
    /// Learned gate. The best overlap must reach the level, and a tool's chance must reach the gate's minimum.
    Learned(&'a Learned),
}

/// Reason why a candidate does not pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shortfall {
    /// Overlap below the threshold that the policy sets for the tool.
    OwnThreshold(f32),
    /// Overlap below the threshold for each tool.
    Threshold(f32),
    /// Best overlap below the level, so that no tool fits.
    Level {
        /// Best overlap of the turn.
        best: f32,
        /// Level that the best overlap must reach.
        level: f32,
    },
    /// Turn that asks for nothing: the message only thanks, greets or takes leave.
    Courtesy,
    /// Score below this share of the best score.
    Ratio(f32),
    /// Chance below the minimum of the policy's learned gate.
    LearnedGate,
    /// Neither an overlap near the level nor enough of the intent's words.
    OwnEvidence {
        /// Overlap that would be enough.
        least: f32,
    },
}

impl Shortfall {
    /// Returns the refusal code for the wire.
    #[must_use]
    pub fn code(self) -> RefusalCode {
        match self {
            Self::OwnThreshold(_) | Self::Threshold(_) | Self::Level { .. } | Self::Courtesy => {
                RefusalCode::BelowThreshold
            }
            Self::Ratio(_) | Self::LearnedGate | Self::OwnEvidence { .. } => {
                RefusalCode::BelowCutoff
            }
        }
    }

    /// Returns the message for a tool of this overlap.
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
            Self::Courtesy => {
                "no tool is asked for: the message only thanks, greets or takes leave".to_owned()
            }
            Self::Ratio(ratio) => format!(
                "its score is too far below the best one's: router.relative_cutoff, or the policy's ratio, asks for {ratio:.2} of it"
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

/// Rule applied to the candidates of one turn.
#[derive(Debug, Clone, Copy)]
pub struct Bar<'a> {
    rule: Rule<'a>,
    level: Level,
    best: Best,
}

impl<'a> Bar<'a> {
    /// Creates the bar for candidates with these best values.
    #[must_use]
    pub fn new(rule: Rule<'a>, level: Level, best: Best) -> Self {
        Self { rule, level, best }
    }

    /// Returns true if a candidate is near enough. A candidate that an intent names always passes.
    #[must_use]
    pub fn passes(&self, candidate: &Candidate) -> bool {
        self.shortfall(candidate).is_none()
    }

    /// Returns the reason why a candidate does not pass; `None` if it passes.
    fn shortfall(&self, candidate: &Candidate) -> Option<Shortfall> {
        if candidate.found_by == FoundBy::Name {
            return None;
        }
        // Untrusted tools do not count for the best overlap. For them, their own overlap is enough.
        let own = self.level.is_reached_by(candidate.parts.nearest);
        let is_reached = own || self.level.is_reached_by(self.best.nearest);
        let no_tool_fits = if self.level == Level::UNREACHABLE {
            Shortfall::Courtesy
        } else {
            Shortfall::Level { best: self.best.nearest, level: self.level.0 }
        };
        let shortfall = match self.rule {
            Rule::Threshold(least) if candidate.overlap >= least => return None,
            Rule::Threshold(least) => Shortfall::Threshold(least),
            Rule::Ratio(_) | Rule::Learned(_) if !is_reached => no_tool_fits,
            Rule::Ratio(_) if candidate.is_reserved => return None,
            Rule::Ratio(ratio) => {
                // Each intent's best is chosen, regardless of how it compares with another intent's best.
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

    /// Returns true if a candidate has evidence of its own. It is not enough that other candidates are worse.
    fn speaks_for(&self, candidate: &Candidate) -> bool {
        let Parts { nearest, word_share, .. } = candidate.parts;
        word_share >= WORD_SHARE || self.own_level().is_reached_by(nearest)
    }

    /// Returns the level that a tool's own overlap must reach.
    fn own_level(&self) -> Level {
        Level(OWN_SHARE * self.level.0)
    }
}

/// Cut of one turn's candidates.
///
/// With a threshold that somebody configured, each tool's overlap must reach it. With the default, no tool fits unless
/// the best overlap reaches a [`Level`]. If it does, the tools are chosen whose score is at least [`Options::ratio`] of
/// the best score. A threshold that suits one catalog is wrong for the next; a share of the best score is not.
/// docs/evaluation.md compares both on labelled sets.
pub struct Cut<'a> {
    snapshot: &'a Snapshot,
    by_words: bool,
    bar: Bar<'a>,
    /// Overlap that each tool must reach even if the policy sets a lower threshold for it.
    floor: Option<f32>,
}

impl<'a> Cut<'a> {
    /// Creates the cut of these candidates.
    #[must_use]
    pub fn of(
        snapshot: &'a Snapshot,
        embedded: &Embedded<'_>,
        options: &'a Options,
        level: Level,
        candidates: &[Candidate],
    ) -> Self {
        let rule = match (options.ratio, &options.learned) {
            (None, _) => Rule::Threshold(options.threshold),
            (Some(_), Some(gate)) => Rule::Learned(gate),
            (Some(ratio), None) => Rule::Ratio(ratio),
        };
        let bar = Bar::new(rule, level, best(snapshot, candidates));
        let is_published = options.selection_rule == SelectionRule::ToolAttention;
        let floor = is_published.then_some(options.threshold);
        Self { snapshot, by_words: embedded.is_words_only(snapshot), bar, floor }
    }

    /// Returns true if a candidate is near enough. A threshold that the policy sets for a tool overrides the rule, but
    /// for Tool Attention's, which it can only make stricter.
    #[must_use]
    pub fn passes(&self, candidate: &Candidate) -> bool {
        let near_enough = || self.bar.passes(candidate);
        self.by_words
            || self.own(candidate).map_or_else(near_enough, |least| candidate.overlap >= least)
    }

    /// Returns true if the threshold that the policy sets for the tool keeps the candidate out.
    #[must_use]
    pub fn is_barred(&self, candidate: &Candidate) -> bool {
        !self.by_words && self.own(candidate).is_some_and(|least| candidate.overlap < least)
    }

    /// Returns the reason why a candidate does not pass; `None` if it passes.
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
        let is_stricter = |least: &f32| self.floor.is_none_or(|floor| *least > floor);
        own.filter(is_stricter).filter(|_| candidate.found_by != FoundBy::Name)
    }
}

/// Returns the best values of the tools that are not untrusted, or of all tools if there are no others.
fn best(snapshot: &Snapshot, candidates: &[Candidate]) -> Best {
    let is_untrusted = |one: &Candidate| snapshot.tool(one.slot).untrusted;
    let others = || candidates.iter().filter(|one| !is_untrusted(one));
    if others().any(|one| one.found_by.is_by_meaning()) {
        Best::of(others())
    } else {
        Best::of(candidates.iter())
    }
}

/// Puts each intent's best before the rest, so that a turn with several intents covers all of them, and tools with a
/// reserved place next. Keeps the order within each group.
pub fn leaders_first(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|candidate| (!candidate.leads, !candidate.is_reserved));
}

#[cfg(test)]
mod tests;
