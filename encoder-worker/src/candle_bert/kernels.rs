//! The element-wise arithmetic between the matrix products, on plain slices, written so that the
//! compiler vectorises it for whatever the CPU offers. Every function here must be inlined into a
//! `pulp::Arch::dispatch`, which is where the CPU's features are known. No threads, no tensors.

use crate::model_dir::Activation;

/// Independent partial sums: floating-point sums are only vectorised when written as such.
const LANES: usize = 16;

/// `x = activation(x + bias)`, row by row.
#[inline(always)]
pub(super) fn bias_activation(rows: &mut [f32], bias: &[f32], activation: Activation) {
    for row in rows.chunks_exact_mut(bias.len()) {
        match activation {
            Activation::Gelu => map_biased(row, bias, gelu),
            Activation::GeluTanh => map_biased(row, bias, gelu_tanh),
            Activation::Relu => map_biased(row, bias, |x| x.max(0.0)),
        }
    }
}

#[inline(always)]
fn map_biased(row: &mut [f32], bias: &[f32], function: impl Fn(f32) -> f32) {
    for (x, bias) in row.iter_mut().zip(bias) {
        *x = function(*x + bias);
    }
}

/// Gaussian error linear unit, exact form: `x * Phi(x)`. Absolute error below 1e-6.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    // Abramowitz and Stegun 7.1.26, an approximation of erf to 1.5e-7.
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = t
        * (0.254_829_6
            + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    let half_erfc = 0.5 * poly * exp(-z * z);
    // Phi(-|x|) = half_erfc, and Phi(|x|) = 1 - half_erfc.
    if x < 0.0 { x * half_erfc } else { x * (1.0 - half_erfc) }
}

/// The `tanh` approximation that some models were trained with.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    let inner = SQRT_2_OVER_PI * (x + 0.044_715 * x * x * x);
    // 0.5 * (1 + tanh(y)) = 1 / (1 + exp(-2y))
    x / (1.0 + exp(-2.0 * inner))
}

/// `e^x` with a relative error near 1e-7; the argument is clamped to what an f32 can hold.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it leaves the rounded value in the low bits: rounding without a rounding instruction.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let series = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let poly = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * series))));
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    poly * power
}

/// Softmax of one row; entries of `f32::NEG_INFINITY` get (next to) nothing.
#[inline(always)]
pub(super) fn softmax(row: &mut [f32]) {
    let max = fold(row, f32::NEG_INFINITY, |x| x, |a, b| if a > b { a } else { b });
    for x in row.iter_mut() {
        *x = exp(*x - max);
    }
    let scale = 1.0 / fold(row, 0.0, |x| x, |a, b| a + b);
    for x in row.iter_mut() {
        *x *= scale;
    }
}

/// `x = layer_norm(x + bias + residual)` for one row.
#[inline(always)]
pub(super) fn add_norm(row: &mut [f32], residual: &[f32], bias: &[f32], norm: &NormRow<'_>) {
    for ((x, residual), bias) in row.iter_mut().zip(residual).zip(bias) {
        *x += residual + bias;
    }
    layer_norm(row, norm);
}

/// A layer norm's parameters.
pub(super) struct NormRow<'a> {
    pub(super) gamma: &'a [f32],
    pub(super) beta: &'a [f32],
    pub(super) epsilon: f32,
}

/// Layer norm of one row.
#[inline(always)]
pub(super) fn layer_norm(row: &mut [f32], norm: &NormRow<'_>) {
    let count = row.len() as f32;
    let mean = fold(row, 0.0, |x| x, |a, b| a + b) / count;
    for x in row.iter_mut() {
        *x -= mean;
    }
    let variance = fold(row, 0.0, |x| x * x, |a, b| a + b) / count;
    let scale = 1.0 / (variance + norm.epsilon).sqrt();
    for ((x, gamma), beta) in row.iter_mut().zip(norm.gamma).zip(norm.beta) {
        *x = *x * scale * gamma + beta;
    }
}

/// Combines `each(x)` over a row, starting from `combine`'s neutral element.
#[inline(always)]
fn fold(
    row: &[f32],
    neutral: f32,
    each: impl Fn(f32) -> f32,
    combine: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut lanes = [neutral; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, each(*x));
        }
    }
    let rest = rest.iter().fold(neutral, |all, x| combine(all, each(*x)));
    lanes.iter().fold(rest, |all, lane| combine(all, *lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf by its Taylor series in f64: exact enough on the range tested.
    fn exact_gelu(x: f64) -> f64 {
        let z = x / std::f64::consts::SQRT_2;
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 * x * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI)
    }

    #[test]
    fn gelu_is_the_exact_form() {
        for step in -5_000..=5_000 {
            let x = step as f32 / 1_000.0;
            let error = f64::from(gelu(x)) - exact_gelu(f64::from(x));
            assert!(error.abs() < 1e-6, "gelu({x}) is off by {error}");
        }
        assert_eq!(gelu(0.0), 0.0);
        assert_eq!(gelu(50.0), 50.0);
        assert!(gelu(-50.0).abs() < 1e-6);
    }

    #[test]
    fn gelu_tanh_follows_its_formula() {
        for step in -800..=800 {
            let x = step as f32 / 100.0;
            let inner = 0.797_884_560_8 * (f64::from(x) + 0.044_715 * f64::from(x).powi(3));
            let exact = 0.5 * f64::from(x) * (1.0 + inner.tanh());
            assert!((f64::from(gelu_tanh(x)) - exact).abs() < 2e-6, "at {x}");
        }
    }

    #[test]
    fn exp_is_close_over_its_range() {
        for step in -8_600..=8_700 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact) / exact;
            assert!(error.abs() < 1e-6, "exp({x}) is off by {error}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn softmax_ignores_minus_infinity() {
        let mut row = vec![1.0, 2.0, 3.0, f32::NEG_INFINITY];
        row.resize(40, f32::NEG_INFINITY);
        softmax(&mut row);
        let sum: f32 = row.iter().sum();
        assert!((sum - 1.0).abs() < 1e-6);
        assert!((row[2] - 0.665_240_96).abs() < 1e-6);
        assert!(row[3] < 1e-30);
    }

    #[test]
    fn layer_norm_has_mean_beta_and_deviation_gamma() {
        let mut row: Vec<f32> = (0..37).map(|i| i as f32 * 3.0 - 7.0).collect();
        let (gamma, beta) = (vec![2.0; 37], vec![5.0; 37]);
        let norm = NormRow { gamma: &gamma, beta: &beta, epsilon: 1e-12 };
        layer_norm(&mut row, &norm);
        let mean = row.iter().sum::<f32>() / 37.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 37.0;
        assert!((mean - 5.0).abs() < 1e-4);
        assert!((variance.sqrt() - 2.0).abs() < 1e-4);
    }
}
