//! Planned send times of calls. They follow a Poisson process, like those of many independent callers.

use std::time::Duration;

use fastrand::Rng;

use crate::arguments::{Stream, seconds};

/// Send times of one stream's calls, relative to the end of the warm-up. The first may come `warmup` seconds before it.
pub(crate) struct Arrivals {
    rng: Rng,
    rate: f64,
    next: f64,
    until: f64,
}

impl Arrivals {
    pub(crate) fn new(stream: &Stream, warmup: f64, length: f64, rng: Rng) -> Self {
        let (from, until) = stream.between.unwrap_or((-warmup, length));
        Self { rng, rate: stream.rate, next: from.max(-warmup), until: until.min(length) }
    }
}

/// A point in time in seconds, relative to the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment(pub(crate) f64);

impl Moment {
    /// Returns the time since the start of the run, which is `warmup` seconds before the end of the warm-up.
    pub(crate) fn after_start(self, warmup: f64) -> Duration {
        seconds(self.0 + warmup)
    }
}

impl Iterator for Arrivals {
    type Item = Moment;

    fn next(&mut self) -> Option<Moment> {
        if self.rate <= 0.0 {
            return None;
        }
        // Times between arrivals of a Poisson process are exponentially distributed.
        self.next += -(1.0 - self.rng.f64()).ln() / self.rate;
        (self.next < self.until).then_some(Moment(self.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(text: &str) -> Vec<f64> {
        let stream = text.parse().expect("a stream");
        Arrivals::new(&stream, 2.0, 100.0, Rng::with_seed(1)).map(|Moment(at)| at).collect()
    }

    #[test]
    fn as_many_come_as_the_rate_says_and_not_evenly() {
        let all = moments("a=100");
        assert!((9_900..10_500).contains(&all.len()), "{}", all.len());
        assert!(all[0] < -1.8 && all.last().is_some_and(|last| *last < 100.0));
        assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        let gaps: Vec<_> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // In an exponential distribution, 1/e of the values exceed the mean.
        let long = gaps.iter().filter(|gap| **gap > 0.01).count() as f64 / gaps.len() as f64;
        assert!((0.34..0.40).contains(&long), "{long}");
    }

    #[test]
    fn a_stream_begins_and_ends_when_it_says() {
        let some = moments("a=50@10..20");
        assert!((430..570).contains(&some.len()), "{}", some.len());
        assert!(some.iter().all(|at| (10.0..20.0).contains(at)));
        assert!(moments("a=0").is_empty());
    }
}
