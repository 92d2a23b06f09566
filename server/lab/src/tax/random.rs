//! Random numbers that are the same on every machine: SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast Splittable
//! Pseudorandom Number Generators", OOPSLA 2014). A seed therefore always gives the same testbed.

/// Sequence of numbers that depends only on its seed.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but excluding `bound`, or 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).expect("less than a bound that is a usize")
    }

    /// Returns true once in `times` calls on average.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of these items.
    ///
    /// # Panics
    /// Panics if there are none.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Shuffles these items.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_sequence() {
        // These are the first numbers of SplitMix64 for seed 0, as published with its reference implementation.
        let mut random = Random::new(0);
        assert_eq!([random.next(), random.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(42);
        let mut seen = [0_u32; 7];
        (0..7_000).for_each(|_| seen[random.below(7)] += 1);
        assert!(seen.iter().all(|times| (800..1_200).contains(times)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        let mut order = [0, 1, 2, 3, 4, 5];
        random.shuffle(&mut order);
        assert_ne!(order, [0, 1, 2, 3, 4, 5]);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }
}
