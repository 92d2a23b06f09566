//! Where the ranking is cut: which candidates are near enough to be chosen.

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
    /// The least score.
    least: f32,
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
        let overlap = ranked().map(|c| c.parts.nearest).fold(f32::NEG_INFINITY, f32::max);
        let best = ranked().map(|c| c.score).fold(0.0, f32::max);
        Self {
            snapshot,
            options,
            by_words: embedded.is_words_only(snapshot),
            is_reached: level.is_reached_by(overlap),
            level,
            least: best * options.ratio.unwrap_or(0.0),
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
            // Each intent's best is chosen, however it compares with another intent's.
            (None, Some(_)) => {
                let leads = candidate.leads && self.level.is_reached_by(candidate.parts.nearest);
                self.is_reached && (leads || candidate.score >= self.least)
            }
        }
    }
}
