//! Throttle that stops retries while a service fails often, because they would add to its load. It uses the same token
//! bucket as gRPC's retry throttling.

use std::sync::atomic::{AtomicU32, Ordering};

/// Capacity of the bucket, in thousandths of a token, so that a tenth is exact.
const FULL: u32 = 10_000;
const FAILURE: u32 = 1_000;
const SUCCESS: u32 = 100;

/// Token bucket for all calls over a connection.
#[derive(Debug)]
pub(crate) struct Throttle(AtomicU32);

impl Throttle {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FULL))
    }

    /// Records an attempt that found the service unavailable.
    pub(crate) fn failed(&self) {
        self.change(|tokens| tokens.saturating_sub(FAILURE));
    }

    /// Records a call that succeeded.
    pub(crate) fn succeeded(&self) {
        self.change(|tokens| (tokens + SUCCESS).min(FULL));
    }

    pub(crate) fn allows_retry(&self) -> bool {
        self.0.load(Ordering::Relaxed) > FULL / 2
    }

    fn change(&self, change: impl Fn(u32) -> u32) {
        // The closure always returns a value, so the update can't fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(change(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_bucket_of_failures_stops_retries_until_enough_succeeds() {
        let throttle = Throttle::new();
        for _ in 0..4 {
            throttle.failed();
        }
        assert!(throttle.allows_retry());
        throttle.failed();
        assert!(!throttle.allows_retry());
        throttle.succeeded();
        assert!(throttle.allows_retry());
        for _ in 0..100 {
            throttle.failed();
        }
        for _ in 0..50 {
            throttle.succeeded();
        }
        assert!(!throttle.allows_retry());
        throttle.succeeded();
        assert!(throttle.allows_retry());
    }
}
