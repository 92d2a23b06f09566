//! Where the ranking is cut: which candidates are near enough to be chosen.

use super::learned::Best;
use super::level::Level;
use super::query::Options;
use super::rank::{Candidate, Embedded, FoundBy};
use crate::gate::verdict::RefusalCode;
use crate::policy::Learned;
use crate::shard::snapshot::Snapshot;

/// What cuts a ranking, whoever's it is: where a calibration tries rules, it tries those that Route goes by.
#[derive(Debug, Clone, Copy)]
pub enum Rule<'a> {
    /// Each tool's overlap must reach it (Tool Attention's rule).
    Threshold(f32),
    /// The best overlap must reach the level, and a tool's score this share of the best one's.
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
                is_reached && (candidate.leads && own || candidate.score >= ratio * self.best.score)
            }
            Rule::Learned(gate) => is_reached && gate.passes(&self.best.features(candidate)),
        }
    }
}

impl Bar<'_> {
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
