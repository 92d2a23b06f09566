//! Rate limit on store lookups of unknown keys, for all callers together and for each network.

use std::collections::HashMap;
use std::time::Instant;

use toolgate_serving::Network;

/// Rate of lookups for all callers together.
const ALL: Rate = Rate { per_second: 200.0, at_once: 1_000.0 };

/// Rate of lookups for one network: a fifth of the whole, so that a network that makes up keys leaves the others
/// their share.
const OF_ONE: Rate = Rate { per_second: 40.0, at_once: 200.0 };

/// Maximum number of networks with buckets of their own.
const NETWORKS_MAX: usize = 10_000;

/// Rate of lookups.
#[derive(Clone, Copy)]
struct Rate {
    /// Average number of lookups per second.
    per_second: f64,
    /// Number of lookups at once, as when a server starts with many callers.
    at_once: f64,
}

struct Bucket {
    rate: Rate,
    left: f64,
    at: Instant,
}

/// Remaining lookups.
pub(super) struct Questions {
    all: Bucket,
    networks: HashMap<Network, Bucket>,
}

impl Questions {
    pub(super) fn full(at: Instant) -> Self {
        Self { all: Bucket::full(ALL, at), networks: HashMap::new() }
    }

    /// Takes a lookup for a peer of this network and returns true if one is left. `None` stands for this host, which
    /// has no limit of its own.
    pub(super) fn take(&mut self, network: Option<Network>, now: Instant) -> bool {
        network.is_none_or(|network| self.of(network, now).take(now)) && self.all.take(now)
    }

    fn of(&mut self, network: Network, now: Instant) -> &mut Bucket {
        if self.networks.len() >= NETWORKS_MAX && !self.networks.contains_key(&network) {
            self.networks.retain(|_, bucket| !bucket.is_full(now));
            // With this many networks at once, the limit for all callers is enough.
            if self.networks.len() >= NETWORKS_MAX {
                self.networks.clear();
            }
        }
        self.networks.entry(network).or_insert_with(|| Bucket::full(OF_ONE, now))
    }
}

impl Bucket {
    fn full(rate: Rate, at: Instant) -> Self {
        Self { rate, left: rate.at_once, at }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.rate.per_second).min(self.rate.at_once);
        self.at = self.at.max(now);
    }

    /// Returns true if the bucket is full, so that dropping it loses nothing.
    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left >= self.rate.at_once
    }

    /// Takes a lookup and returns true if one is left.
    fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::*;

    fn network(number: u32) -> Option<Network> {
        Network::of(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)))
    }

    #[test]
    fn questions_are_bounded() {
        for (from, at_once, per_second) in [(None, 1_000, 200), (network(1), 200, 40)] {
            let start = Instant::now();
            let mut questions = Questions::full(start);
            let mut asked = |at| (0..5_000).filter(|_| questions.take(from, at)).count();
            assert_eq!(asked(start), at_once);
            assert_eq!(asked(start + Duration::from_secs(1)), per_second);
            assert_eq!(asked(start), 0, "time does not run back");
            assert_eq!(asked(start + Duration::from_secs(60)), at_once);
        }
    }

    #[test]
    fn many_networks_together_have_no_more_than_all_and_few_are_kept() {
        let start = Instant::now();
        let mut questions = Questions::full(start);
        let asked = (0..50_000).filter(|number| questions.take(network(*number), start)).count();
        assert_eq!(asked, 1_000);
        assert!(questions.networks.len() <= NETWORKS_MAX);
        let later = start + Duration::from_secs(1);
        let busy = network(1_000_000);
        assert_eq!((0..500).filter(|_| questions.take(busy, later)).count(), 200);
        for number in 1_000_001..1_020_001 {
            questions.take(network(number), later);
        }
        assert!(questions.networks.len() <= NETWORKS_MAX);
    }
}
