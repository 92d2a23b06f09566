//! Training of the learned gate: logistic regression by gradient descent over all candidates at once. The problem is
//! convex, so the same queries always give the same gate.

use super::cases::{Case, Judged};
use toolgate_core::policy::{FEATURE_COUNT, Features, Learned};

/// Number of descent steps. `RATE` is the length of a step, and `RIDGE` is the penalty that keeps weights near 0 (T.
/// Hastie, R. Tibshirani and J. Friedman, "The Elements of Statistical Learning", section 4.4, 2009).
const STEPS: usize = 400;
const RATE: f64 = 0.5;
const RIDGE: f64 = 1e-3;

/// Trains a gate on the first `top_k` candidates of each query. Its least chance is 0, so it passes every candidate.
pub(super) fn train(cases: &[&Case], top_k: usize) -> Learned {
    let samples: Vec<Sample> = cases.iter().flat_map(|case| samples(case, top_k)).collect();
    let scale = Scale::of(&samples);
    let rows: Vec<[f64; FEATURE_COUNT]> =
        samples.iter().map(|(features, _)| scale.apply(features)).collect();
    let labels: Vec<f64> = samples.iter().map(|(_, label)| *label).collect();
    let mut weights = [0.0_f64; FEATURE_COUNT];
    let mut bias = 0.0_f64;
    for _ in 0..STEPS {
        let mut slope = [0.0_f64; FEATURE_COUNT];
        let mut lift = 0.0_f64;
        for (row, label) in rows.iter().zip(&labels) {
            let sum: f64 = row.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
            let error = 1.0 / (1.0 + (-(sum + bias)).exp()) - label;
            lift += error;
            slope.iter_mut().zip(row).for_each(|(slope, value)| *slope += error * value);
        }
        let count = rows.len().max(1) as f64;
        for (weight, slope) in weights.iter_mut().zip(slope) {
            *weight -= RATE * (slope / count + RIDGE * *weight);
        }
        bias -= RATE * lift / count;
    }
    scale.fold(weights, bias)
}

/// Features of a candidate, with its label: 1 if it is right, else 0.
type Sample = (Features, f64);

/// Returns the samples of a query. Candidates that the query names are left out, because the gate does not judge them.
fn samples(case: &Case, top_k: usize) -> impl Iterator<Item = Sample> {
    let asked = case.candidates.iter().filter(|one| one.candidate.found_by.is_by_meaning());
    let sample =
        |one: &Judged| (case.best.features(&one.candidate), f64::from(u8::from(one.is_relevant)));
    asked.take(top_k).map(sample)
}

/// Mean and standard deviation of each feature. The descent needs all features on the same scale.
struct Scale {
    means: [f64; FEATURE_COUNT],
    deviations: [f64; FEATURE_COUNT],
}

impl Scale {
    fn of(samples: &[Sample]) -> Self {
        let count = samples.len().max(1) as f64;
        let values =
            |place: usize| samples.iter().map(move |(features, _)| f64::from(features[place]));
        let means = std::array::from_fn(|place| values(place).sum::<f64>() / count);
        let deviations = std::array::from_fn(|place| {
            let mean: f64 = values(place).sum::<f64>() / count;
            let variance = values(place).map(|value| (value - mean).powi(2)).sum::<f64>() / count;
            // A constant feature tells nothing. An infinite deviation makes its weight 0 instead of huge.
            if variance > 1e-12 { variance.sqrt() } else { f64::INFINITY }
        });
        Self { means, deviations }
    }

    fn apply(&self, features: &Features) -> [f64; FEATURE_COUNT] {
        std::array::from_fn(|place| {
            (f64::from(features[place]) - self.means[place]) / self.deviations[place]
        })
    }

    /// Converts weights and bias for scaled features to a gate for unscaled ones.
    fn fold(&self, weights: [f64; FEATURE_COUNT], bias: f64) -> Learned {
        let own: [f64; FEATURE_COUNT] =
            std::array::from_fn(|place| weights[place] / self.deviations[place]);
        let moved: f64 = own.iter().zip(&self.means).map(|(weight, mean)| weight * mean).sum();
        Learned {
            weights: own.map(|weight| weight as f32),
            bias: (bias - moved) as f32,
            least: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::samples::{case, judged};

    #[test]
    fn what_tells_right_from_wrong_is_learned_and_what_is_always_the_same_is_not() {
        let apart = |i: u8| {
            let more = f32::from(i) / 100.0;
            case(vec![judged(0.5 + more, 1.0, true), judged(0.2 + more, 1.0, false)], 1)
        };
        let cases: Vec<Case> = (0..20).map(apart).collect();
        let gate = train(&cases.iter().collect::<Vec<_>>(), 10);
        // Weight 0 is of the overlap, weight 3 of the score.
        assert!(gate.weights[0] > 1.0 && gate.weights[3] == 0.0, "{gate:?}");
        for (features, label) in cases.iter().flat_map(|case| samples(case, 10)) {
            assert_eq!(gate.chance(&features) > 0.5, label > 0.5, "{features:?}");
        }
        assert_eq!(train(&[], 10).weights, [0.0; FEATURE_COUNT]);
    }
}
