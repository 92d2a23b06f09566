//! The level below which no tool fits: what the best overlap of a turn must reach.

use fixedbitset::FixedBitSet;

use super::background::Band;
use super::intent::Intent;
use super::query::Options;
use crate::shard::snapshot::Snapshot;

/// Every overlap reaches it.
const NONE: f32 = -1.0;

/// The least overlap that the best tool must have with an intent or one of its clauses; otherwise no tool fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(pub f32);

impl Level {
    /// The level of one turn: what the policy says (`abstain_below`), or else [`Options::threshold`], moved into
    /// the band in which chance brings the nearest of the allowed tools.
    ///
    /// A turn with an intent that is not plain English letters has none: the encoder may not know its language, and
    /// doubt sends tools. Nor has one whose threshold is for each tool.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        (intents, options): (&[Intent], &Options),
        background: &[Vec<f32>],
        allowed: Option<&FixedBitSet>,
    ) -> Self {
        let is_foreign = |c: char| !c.is_ascii() && c.is_alphabetic();
        if options.ratio.is_none() || intents.iter().any(|one| one.text.contains(is_foreign)) {
            return Self(NONE);
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
