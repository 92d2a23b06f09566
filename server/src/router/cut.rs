//! Where the ranking is cut: which candidates are near enough to be chosen.

use super::learned::Best;
use super::level::Level;
use super::query::Options;
use super::rank::{Candidate, Embedded, FoundBy};
use crate::shard::snapshot::Snapshot;

/// The cut of one turn's candidates.
///
/// With a threshold that somebody named, each tool's overlap must reach it (Tool Attention's rule). With the
/// default, the best overlap must reach a [`Level`], or no tool fits; then those are chosen whose score is at least
/// [`Options::ratio`] of the best one's. A threshold that is right for one catalog is wrong for the next, a share of
/// the best is not: docs/evaluation.md holds both against labelled sets.
pub struct Cut<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    by_words: bool,
    level: Level,
    /// The best overlap reaches the level.
    is_reached: bool,
    best: Best,
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
        let ranked = || candidates.iter().filter(|c| c.found_by == FoundBy::Overlap);
        let best = Best::of(ranked());
        Self {
            snapshot,
            options,
            by_words: embedded.is_words_only(snapshot),
            is_reached: level.is_reached_by(best.nearest),
            level,
            best,
        }
    }

    /// Whether a candidate is near enough.
    #[must_use]
    pub fn passes(&self, candidate: &Candidate) -> bool {
        if self.by_words || candidate.found_by == FoundBy::Name {
            return true;
        }
        match (self.snapshot.tool(candidate.slot).threshold, self.options.ratio) {
            (Some(threshold), _) => candidate.overlap >= threshold,
            (None, None) => candidate.overlap >= self.options.threshold,
            (None, Some(_)) if !self.is_reached => false,
            (None, Some(ratio)) => {
                if let Some(learned) = &self.options.learned {
                    return learned.passes(&self.best.features(candidate));
                }
                // Each intent's best is chosen, however it compares with another intent's.
                let leads = candidate.leads && self.level.is_reached_by(candidate.parts.nearest);
                leads || candidate.score >= ratio * self.best.score
            }
        }
    }
}
