//! How often the store is asked about keys that nobody here has seen.

use std::time::Instant;

/// Questions a second, on average.
const PER_SECOND: f64 = 200.0;

/// Questions at once, as when a server starts among many callers.
const AT_ONCE: f64 = 1_000.0;

pub(super) struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn full(at: Instant) -> Self {
        Self { left: AT_ONCE, at }
    }

    /// Whether one more question may be asked.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * PER_SECOND).min(AT_ONCE);
        self.at = self.at.max(now);
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn questions_are_bounded() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        let mut asked = |at| (0..5_000).filter(|_| bucket.take(at)).count();
        assert_eq!(asked(start), 1_000);
        assert_eq!(asked(start + Duration::from_secs(1)), 200);
        assert_eq!(asked(start), 0, "time does not run back");
        assert_eq!(asked(start + Duration::from_secs(60)), 1_000);
    }
}
