//! Random numbers, to spread out events that would otherwise happen at the same time, and to draw checks.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Returns a random number from 0 to 1. Each `RandomState` has its own keys, which is random enough here.
pub(super) fn unit() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

/// Returns a random number less than `bound`, or 0 if `bound` is 0.
pub(super) fn below(bound: usize) -> usize {
    ((unit() * bound as f64) as usize).min(bound.saturating_sub(1))
}

/// Returns a random number of 64 bits.
pub(super) fn number() -> u64 {
    RandomState::new().hash_one(1_u8)
}
