//! Level of the best overlap of a turn below which no tool fits.

use fixedbitset::FixedBitSet;

use crate::router::intent::Intent;
use crate::router::query::Options;
use crate::router::ranking::background::Band;
use crate::shard::snapshot::Snapshot;

/// Minimum overlap of the best tool with an intent or one of its clauses, -1 to 1. Below it, no tool fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(pub f32);

impl Level {
    /// Level that every overlap reaches.
    pub const NONE: Self = Self(-1.0);

    /// Level that no overlap reaches, for turns that ask for nothing.
    pub const UNREACHABLE: Self = Self(2.0);

    /// Returns true if a level applies to a turn. It does not if an intent has letters beyond ASCII: the encoder may
    /// not know the language, and in doubt tools are sent.
    #[must_use]
    pub fn is_asked_of(intents: &[Intent]) -> bool {
        let is_foreign = |c: char| !c.is_ascii() && c.is_alphabetic();
        !intents.iter().any(|one| one.text.contains(is_foreign))
    }

    /// Returns the level of one turn. It is the policy's `abstain_below`, or else [`Options::threshold`] moved into the
    /// band in which chance puts the nearest of the allowed tools. Returns [`Level::NONE`] if no level applies, or if
    /// the threshold is for each tool, and [`Level::UNREACHABLE`] if the intents ask for nothing.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        intents: &[Intent],
        options: &Options,
        background: &[Vec<f32>],
        allowed: Option<&FixedBitSet>,
    ) -> Self {
        if options.ratio.is_none() {
            return Self::NONE;
        }
        if !intents.is_empty() && intents.iter().all(Intent::is_courtesy) {
            return Self::UNREACHABLE;
        }
        if !Self::is_asked_of(intents) {
            return Self::NONE;
        }
        let band = || Band::of(snapshot, background, allowed);
        let moved = || band().map_or(options.threshold, |band| band.clamp(options.threshold));
        Self(options.abstain_below.unwrap_or_else(moved))
    }

    /// Returns true if a best overlap is enough.
    #[must_use]
    pub fn is_reached_by(self, overlap: f32) -> bool {
        overlap >= self.0
    }
}

#[cfg(test)]
mod tests;
