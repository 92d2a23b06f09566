//! How often the store is asked about keys that nobody here has seen: by everybody together, and by each network.

use std::collections::HashMap;
use std::time::Instant;

use toolgate_serving::Network;

/// Questions of everybody.
const ALL: Rate = Rate { per_second: 200.0, at_once: 1_000.0 };

/// Questions of one network: a fifth, so that who makes up keys leaves the others theirs.
const OF_ONE: Rate = Rate { per_second: 40.0, at_once: 200.0 };

/// Networks that are told apart.
const NETWORKS_MAX: usize = 10_000;

/// How many questions may be asked.
#[derive(Clone, Copy)]
struct Rate {
    /// On average.
    per_second: f64,
    /// At once, as when a server starts among many callers.
    at_once: f64,
}

struct Bucket {
    rate: Rate,
    left: f64,
    at: Instant,
}

/// What is left of the questions that may be asked.
pub(super) struct Questions {
    all: Bucket,
    networks: HashMap<Network, Bucket>,
}

impl Questions {
    pub(super) fn full(at: Instant) -> Self {
        Self { all: Bucket::full(ALL, at), networks: HashMap::new() }
    }

    /// Whether one more question may be asked for a peer of this network; `None` for this host, which has no bound of its
    /// own.
    pub(super) fn take(&mut self, network: Option<Network>, now: Instant) -> bool {
        network.is_none_or(|network| self.of(network, now).take(now)) && self.all.take(now)
    }

    fn of(&mut self, network: Network, now: Instant) -> &mut Bucket {
        if self.networks.len() >= NETWORKS_MAX && !self.networks.contains_key(&network) {
            self.networks.retain(|_, bucket| !bucket.is_full(now));
            // So many networks at once are held by the bound of all.
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

    /// Whether nothing would be lost by forgetting it.
    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left >= self.rate.at_once
    }

    /// Whether one more question may be asked.
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
