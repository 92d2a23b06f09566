//! The level below which no tool fits: what the best overlap of a turn must reach.

use fixedbitset::FixedBitSet;

use super::background::Band;
use super::intent::Intent;
use super::query::Options;
use crate::shard::snapshot::{Snapshot, WithPacks};

/// What is taken off the threshold where tools have packs, from whose overlaps twice as much is taken. False accepts and
/// rejects of 300 intents, written without the packs in view, over the shipped catalogs at .28: .360 and .148; at .18:
/// .58 and .04; without packs .620 and .116. Of 140 others: .050 and .130; .250 and .000; .250 and .100.
const PACKED: f32 = 0.1;

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
        let has_packs = snapshot.with_packs() != WithPacks::None;
        let threshold = options.threshold - if has_packs { PACKED } else { 0.0 };
        let moved = || band().map_or(threshold, |band| band.clamp(threshold));
        Self(options.abstain_below.unwrap_or_else(moved))
    }

    /// Whether a best overlap is enough.
    #[must_use]
    pub fn is_reached_by(self, overlap: f32) -> bool {
        overlap >= self.0
    }
}
