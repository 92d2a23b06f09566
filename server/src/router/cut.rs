//! Where the ranking is cut: which candidates are near enough to be chosen.

use super::learned::Best;
use super::level::Level;
use super::query::Options;
use super::rank::{Candidate, Embedded, FoundBy, Parts};
use crate::gate::verdict::RefusalCode;
use crate::policy::Learned;
use crate::shard::snapshot::Snapshot;

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
        if candidate.found_by == FoundBy::Name {
            return true;
        }
        // Of an untrusted tool, which the best is not taken from, its own overlap is enough.
        let own = self.level.is_reached_by(candidate.parts.nearest);
        let is_reached = own || self.level.is_reached_by(self.best.nearest);
        match self.rule {
            Rule::Threshold(threshold) => candidate.overlap >= threshold,
            Rule::Ratio(ratio) => {
                // Each intent's best is chosen, however it compares with another intent's.
                let is_near_best = candidate.score >= ratio * self.best.score;
                is_reached
                    && (candidate.leads && own
                        || is_near_best && (candidate.leads || self.speaks_for(candidate)))
            }
            Rule::Learned(gate) => is_reached && gate.passes(&self.best.features(candidate)),
        }
    }
}

impl Bar<'_> {
    /// Whether there is more for a candidate than that others are worse: padding is not.
    fn speaks_for(&self, candidate: &Candidate) -> bool {
        let Parts { nearest, word_share, .. } = candidate.parts;
        word_share >= WORD_SHARE || Level(OWN_SHARE * self.level.0).is_reached_by(nearest)
    }

    /// Returns true if some tool fits, and this one's score or chance is too small beside it.
    fn is_below_the_best(&self, candidate: &Candidate) -> bool {
        !matches!(self.rule, Rule::Threshold(_))
            && self.level.is_reached_by(self.best.nearest)
            && !self.passes(candidate)
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

    /// The code of a candidate that does not pass: which rule leaves it out.
    #[must_use]
    pub fn code(&self, candidate: &Candidate) -> RefusalCode {
        let is_cut = self.own(candidate).is_none() && self.bar.is_below_the_best(candidate);
        if is_cut { RefusalCode::BelowCutoff } else { RefusalCode::BelowThreshold }
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
}
