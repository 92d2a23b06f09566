//! Random numbers of a seed, the same on every machine and in every version: SplitMix64 (G. L. Steele, D. Lea and
//! C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Samples, splits and testbeds of
//! published measurements depend on this exact sequence, which a crate may change.

/// Sequence of numbers that depends only on its seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but excluding `bound`, or 0 for a bound of 0. No number is likelier than another
    /// by more than `bound` in 2^64.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let scaled = (u128::from(self.bits()) * bound as u128) >> 64;
        usize::try_from(scaled).expect("less than a bound that is a usize")
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of these items.
    ///
    /// # Panics
    /// Panics if there are none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Shuffles these items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_the_published_sequence() {
        // These are the first numbers as published with the reference implementation.
        let mut random = Random::new(0);
        assert_eq!([random.bits(), random.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let wanted =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, wanted);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_are_spread_evenly() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[random.below(7)] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut order = [0, 1, 2, 3, 4, 5];
        Random::new(42).shuffle(&mut order);
        assert_ne!(order, [0, 1, 2, 3, 4, 5]);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }
}
