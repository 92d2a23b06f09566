//! Chance, for spreading out what would otherwise happen at once.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// From 0 to 1. Each `RandomState` has keys of its own, which is random enough here.
pub(super) fn unit() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

/// A number less than `bound`; 0 where there is none.
pub(super) fn below(bound: usize) -> usize {
    ((unit() * bound as f64) as usize).min(bound.saturating_sub(1))
}

/// Any number.
pub(super) fn number() -> u64 {
    RandomState::new().hash_one(1_u8)
}
