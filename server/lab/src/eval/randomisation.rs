//! Paired randomisation test of whether two configurations differ by more than chance (M. D. Smucker, J. Allan and B.
//! Carterette, "A comparison of statistical significance tests for information retrieval evaluation", CIKM 2007). If
//! both were the same, each query's difference could just as well have the other sign.

use crate::random::Random;

/// Number of times that signs are drawn. The least p is 1 / (`DRAWS` + 1).
pub const DRAWS: u32 = 10_000;

/// Returns the probability of a mean difference at least as far from 0, in either direction, if signs are drawn at
/// random.
#[must_use]
pub fn p_value(differences: &[f64], seed: u64) -> f64 {
    // Differences of 0 do not count, whatever their sign.
    let differences: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let size: f64 = differences.iter().map(|d| d.abs()).sum();
    // Sums in another order differ in their last digits, so the bound is slightly lower.
    let observed = differences.iter().sum::<f64>().abs() - size * 1e-12;
    let mut random = Random::new(seed);
    let mut as_far = 0_u32;
    for _ in 0..DRAWS {
        as_far += u32::from(signed_sum(&differences, &mut random).abs() >= observed);
    }
    // The observed signs are one of the draws.
    f64::from(as_far + 1) / f64::from(DRAWS + 1)
}

fn signed_sum(differences: &[f64], random: &mut Random) -> f64 {
    let mut sum = 0.0;
    for chunk in differences.chunks(64) {
        let mut signs = random.bits();
        for difference in chunk {
            sum += if signs & 1 == 1 { *difference } else { -difference };
            signs >>= 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(differences: &[f64], wanted: f64) {
        let p = p_value(differences, 1);
        assert!((p - wanted).abs() < 0.02, "{p} for {wanted}");
    }

    #[test]
    fn small_cases_are_those_counted_by_hand() {
        // Of the 2^5 ways to choose signs, two are as far from 0: all plus and all minus.
        check(&[1.0; 5], 2.0 / 32.0);
        // Zeros do not count.
        check(&[1.0, 0.0, 1.0, 0.0, 1.0], 2.0 / 8.0);
        // |1 + 2 - 4| = 1 is the least that any signs give.
        check(&[1.0, 2.0, -4.0], 1.0);
        // 1 + 2 + 4 is the most.
        check(&[1.0, 2.0, 4.0], 2.0 / 8.0);
        check(&[], 1.0);
        check(&[0.1, -0.1, 0.1, -0.1], 1.0);
    }

    #[test]
    fn clear_differences_have_the_least_p() {
        let p = p_value(&[0.25; 100], 3);
        assert!((p - 1.0 / f64::from(DRAWS + 1)).abs() < 1e-12, "{p}");
    }
}
