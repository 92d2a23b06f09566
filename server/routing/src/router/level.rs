//! The level below which no tool fits: what the best overlap of a turn must reach.

use fixedbitset::FixedBitSet;

use super::background::Band;
use super::intent::Intent;
use super::query::Options;
use crate::shard::snapshot::Snapshot;

/// The least overlap that the best tool must have with an intent or one of its clauses; otherwise no tool fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(pub f32);

impl Level {
    /// Every overlap reaches it.
    pub const NONE: Self = Self(-1.0);

    /// Whether a level is asked of a turn: not of one with an intent that is not plain English letters. The encoder
    /// may not know its language, and doubt sends tools.
    #[must_use]
    pub fn is_asked_of(intents: &[Intent]) -> bool {
        let is_foreign = |c: char| !c.is_ascii() && c.is_alphabetic();
        !intents.iter().any(|one| one.text.contains(is_foreign))
    }

    /// The level of one turn: what the policy says (`abstain_below`), or else [`Options::threshold`], moved into
    /// the band in which chance brings the nearest of the allowed tools.
    /// [`Level::NONE`] where it is not asked, or the threshold is for each tool.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        (intents, options): (&[Intent], &Options),
        background: &[Vec<f32>],
        allowed: Option<&FixedBitSet>,
    ) -> Self {
        if options.ratio.is_none() || !Self::is_asked_of(intents) {
            return Self::NONE;
        }
        let band = || Band::of(snapshot, background, allowed);
        let moved = || band().map_or(options.threshold, |band| band.clamp(options.threshold));
        Self(options.abstain_below.unwrap_or_else(moved))
    }

    /// Whether a best overlap is enough.
    #[must_use]
    pub fn is_reached_by(self, overlap: f32) -> bool {
        overlap >= self.0
    }
}
