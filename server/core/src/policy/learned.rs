//! Learned gate (Tool Attention, section 6: a small model in place of the threshold): logistic regression over features
//! of a candidate, with weights from a policy. The router defines the features.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Number of features.
pub const FEATURE_COUNT: usize = 12;

/// Names of the gate's features, in the order of its weights.
pub const FEATURES: [&str; FEATURE_COUNT] = [
    "overlap",
    "nearest",
    "behind",
    "score",
    "share",
    "best",
    "words",
    "whole",
    "clause",
    "leads",
    "called",
    "server_called",
];

/// Largest weight, positive or negative. Sums of such weights stay finite, so that every chance is a number.
const WEIGHT_MAX: f32 = 1e6;

/// Values of the features, in the order of [`FEATURES`].
pub type Features = [f32; FEATURE_COUNT];

/// Learned gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// Weight of each feature.
    pub weights: Features,
    /// Constant that is added to the weighted sum.
    pub bias: f32,
    /// Minimum chance of a chosen tool, 0 to 1.
    pub least: f32,
}

impl Learned {
    /// Returns the chance that a candidate serves, 0 to 1.
    #[must_use]
    pub fn chance(&self, features: &Features) -> f32 {
        let sum: f32 =
            self.weights.iter().zip(features).map(|(weight, value)| weight * value).sum();
        1.0 / (1.0 + (-(sum + self.bias)).exp())
    }

    /// Returns the same gate with another minimum chance.
    #[must_use]
    pub fn asking(self, least: f32) -> Self {
        Self { least, ..self }
    }

    /// Returns true if the candidate's chance reaches the minimum.
    #[must_use]
    pub fn passes(&self, features: &Features) -> bool {
        self.chance(features) >= self.least
    }
}

/// Text form of the gate.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct LearnedText {
    least: f32,
    bias: f32,
    /// Weights by feature name. A feature that is left out has the weight 0.
    weights: BTreeMap<String, f32>,
}

impl LearnedText {
    /// Checks the gate and returns it. The error describes the problem.
    pub(super) fn check(&self) -> Result<Learned, String> {
        if !(0.0..=1.0).contains(&self.least) {
            return Err("`least` must be a chance, 0 to 1".to_owned());
        }
        let mut weights = [0.0; FEATURE_COUNT];
        for (name, weight) in &self.weights {
            let Some(place) = FEATURES.iter().position(|feature| feature == name) else {
                let known = FEATURES.join(", ");
                return Err(format!("{name:?} is no feature: the weights are of {known}"));
            };
            weights[place] = *weight;
        }
        if weights.iter().chain([&self.bias]).all(|weight| weight.abs() <= WEIGHT_MAX) {
            Ok(Learned { weights, bias: self.bias, least: self.least })
        } else {
            Err(format!("weights and bias must be within {WEIGHT_MAX} of 0"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_the_logistic_of_the_weighted_sum() {
        let mut weights = [0.0; FEATURE_COUNT];
        (weights[0], weights[11]) = (2.0, -1.0);
        let gate = Learned { weights, bias: 0.2, least: 0.5 };
        let mut features = [0.5; FEATURE_COUNT];
        (features[0], features[11]) = (0.4, 1.0);
        assert!((gate.chance(&features) - 0.5).abs() < 1e-6 && gate.passes(&features));
        features[0] = 0.9;
        assert!((gate.chance(&features) - 1.0 / (1.0 + (-1.0_f32).exp())).abs() < 1e-6);
        assert!(!Learned { least: 0.9, ..gate }.passes(&features));
    }
    #[test]
    fn what_no_gate_can_be_is_refused() {
        let text = |least, bias, weight: (&str, f32)| LearnedText {
            least,
            bias,
            weights: [(weight.0.to_owned(), weight.1)].into(),
        };
        assert!(text(0.5, -1.0, ("words", 2.0)).check().is_ok());
        for (wrong, problem) in [
            (text(1.5, 0.0, ("words", 1.0)), "0 to 1"),
            (text(0.5, f32::NAN, ("words", 1.0)), "within 1000000 of 0"),
            (text(0.5, 0.0, ("words", f32::INFINITY)), "within 1000000 of 0"),
            (text(0.5, 0.0, ("words", -2e6)), "within 1000000 of 0"),
            (text(0.5, 0.0, ("colour", 1.0)), "\"colour\" is no feature"),
        ] {
            let error = wrong.check().unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
