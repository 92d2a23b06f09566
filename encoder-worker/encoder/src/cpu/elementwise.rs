//! Element-wise arithmetic between the matrix products, on plain slices, written so that the compiler vectorises it for
//! any CPU. Every function here must be inlined into a `pulp::Arch::dispatch`, which is the place that knows the CPU's
//! features.

use pulp::{Arch, Simd, WithSimd};

use super::isa::vectorised;
use super::kernel::{PANEL, PanelRow};
use crate::device::NumberFormat;
use crate::model_dir::Activation;

/// Computes `x = activation(x)`, as precisely as values kept as `format` require. The number of values is a multiple of
/// 16.
pub(super) fn activate(
    arch: Arch,
    values: &mut [f32],
    activation: Activation,
    format: NumberFormat,
) {
    match (activation, format) {
        (Activation::Gelu, NumberFormat::Int8) => arch.dispatch(RoughGelu(values)),
        (Activation::Gelu, _) => arch.dispatch(Gelu(values)),
        (Activation::GeluTanh, _) => vectorised(
            arch,
            #[inline(always)]
            || values.iter_mut().for_each(|x| *x = gelu_tanh(*x)),
        ),
        (Activation::Relu, _) => vectorised(
            arch,
            #[inline(always)]
            || values.iter_mut().for_each(|x| *x = x.max(0.0)),
        ),
    }
}

/// Gaussian error linear unit, exact form: `x * Phi(x)`. Absolute error below 4e-6 for |x| < 6.4. It uses explicit
/// vectors, because only these allow a fused multiply-add.
struct Gelu<'a>(&'a mut [f32]);

/// Limit beyond which Phi is 0 or 1 to within the error.
const GELU_LIMIT: f32 = 5.0;

/// Coefficients of `(Phi(x) - 1/2) / x` as a polynomial in `2 x^2 / GELU_LIMIT^2 - 1`: a Chebyshev fit, weighted for
/// the least error of its product with `x^2`. In powers of `x^2` itself, rounding would cost 100 times more.
const GELU_SERIES: [f32; 13] = [
    0.141_363_78,
    -0.070_296_65,
    0.051_521_42,
    -0.040_432_95,
    0.031_426_23,
    -0.023_336_726,
    0.016_497_66,
    -0.010_973_252,
    0.006_165_430_6,
    -0.002_915_642_5,
    0.002_001_848_7,
    -0.001_514_169_8,
    0.000_492_978_8,
];

impl WithSimd for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let limit = simd.splat_f32s(GELU_LIMIT);
        let half = simd.splat_f32s(0.5);
        let lowest = simd.splat_f32s(-GELU_LIMIT);
        let factor = simd.splat_f32s(2.0 / (GELU_LIMIT * GELU_LIMIT));
        let minus_one = simd.splat_f32s(-1.0);
        let (vectors, _) = S::as_mut_simd_f32s(self.0);
        for x in vectors {
            let near = simd.max_f32s(lowest, simd.min_f32s(limit, *x));
            let t = simd.mul_add_e_f32s(simd.mul_f32s(near, near), factor, minus_one);
            let mut series = simd.splat_f32s(GELU_SERIES[12]);
            for c in GELU_SERIES[..12].iter().rev() {
                series = simd.mul_add_e_f32s(series, t, simd.splat_f32s(*c));
            }
            *x = simd.mul_f32s(*x, simd.mul_add_e_f32s(series, near, half));
        }
    }
}

/// Approximation of [`Gelu`] with an absolute error below 2e-4 for |x| < 9: a hundredth of an 8-bit step.
struct RoughGelu<'a>(&'a mut [f32]);

/// Limit beyond which Phi is 0 or 1 to within the error.
const ROUGH_GELU_LIMIT: f32 = 4.0;

/// Coefficients of `(Phi(x) - 1/2) / x` as a polynomial in `x^2`: a fit for the least error of its product with `x^2`.
const ROUGH_GELU_SERIES: [f32; 7] = [
    0.397_883_33,
    -0.064_573_1,
    0.008_772_385,
    -0.000_814_015_05,
    4.795_548_7e-5,
    -1.598_601_1e-6,
    2.278_142_3e-8,
];

impl WithSimd for RoughGelu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let splat = |x| simd.splat_f32s(x);
        let (vectors, _) = S::as_mut_simd_f32s(self.0);
        for x in vectors {
            let near = simd.min_f32s(splat(ROUGH_GELU_LIMIT), *x);
            let near = simd.max_f32s(splat(-ROUGH_GELU_LIMIT), near);
            let square = simd.mul_f32s(near, near);
            let mut series = splat(ROUGH_GELU_SERIES[6]);
            for c in ROUGH_GELU_SERIES[..6].iter().rev() {
                series = simd.mul_add_e_f32s(series, square, splat(*c));
            }
            *x = simd.mul_f32s(*x, simd.mul_add_e_f32s(series, near, splat(0.5)));
        }
    }
}

/// Computes the `tanh` approximation that some models were trained with.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    let inner = SQRT_2_OVER_PI * (x + 0.044_715 * x * x * x);
    // 0.5 * (1 + tanh(y)) = 1 / (1 + exp(-2y))
    x / (1.0 + exp(-2.0 * inner))
}

/// Constant that leaves the rounded value in the low bits when added: rounding without a rounding instruction.
const ROUND: f32 = 12_582_912.0;

/// High part of ln 2. It has few bits, so its multiples are exact; `LN_2_LOW` is the rest.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Taylor series of `e^x`, accurate to 1e-7 for |x| < ln(2) / 2.
const EXP_SERIES: [f32; 8] =
    [1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0];

/// Returns `e^x` with a relative error near 1e-7; the argument is clamped to the range of an f32.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let series = EXP_SERIES.iter().rev().fold(0.0, |sum, c| sum * r + c);
    series * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// Computes `x = e^(x - max)` over one row, in which no entry exceeds `max`; returns the sum, by which softmax divides.
/// Entries of `f32::NEG_INFINITY` become almost zero. Rows are multiples of 16.
#[inline(always)]
pub(super) fn exponentials<S: Simd>(simd: S, row: &mut [f32], max: S::f32s) -> f32 {
    let mut sum = simd.splat_f32s(0.0);
    let (vectors, _) = S::as_mut_simd_f32s(row);
    for x in vectors {
        *x = exp_of_negative(simd, simd.sub_f32s(*x, max));
        sum = simd.add_f32s(sum, *x);
    }
    simd.reduce_sum_f32s(sum)
}

/// Chebyshev fit of `2^x` for |x| <= 1/2, with an error within 3e-7.
const EXP2_SERIES: [f32; 6] = [
    1.000_000_1,
    std::f32::consts::LN_2,
    0.240_221_07,
    0.055_503_27,
    0.009_676_037,
    0.001_340_043_3,
];

/// Returns `e^x` for x <= 0, with an error within 5e-6. The result is at least about 1e-37. With n + r = x log2(e), n
/// goes into the exponent of `2^r`.
#[inline(always)]
fn exp_of_negative<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let splat = |x| simd.splat_f32s(x);
    let x = simd.max_f32s(splat(-125.0), simd.mul_f32s(x, splat(std::f32::consts::LOG2_E)));
    let shifted = simd.add_f32s(x, splat(ROUND));
    let r = simd.sub_f32s(x, simd.sub_f32s(shifted, splat(ROUND)));
    let mut series = splat(EXP2_SERIES[5]);
    for c in EXP2_SERIES[..5].iter().rev() {
        series = simd.mul_add_e_f32s(series, r, splat(*c));
    }
    let n = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    simd.transmute_f32s_u32s(simd.add_u32s(n, simd.transmute_u32s_f32s(series)))
}

/// Parameters of a layer norm.
pub(super) struct Norm {
    pub(super) gamma: Vec<f32>,
    pub(super) beta: Vec<f32>,
    /// Scale that replaces gamma, without a beta, for the product that follows (explained in `balance`).
    pub(super) next: Vec<f32>,
    pub(super) epsilon: f32,
}

/// Layer norm of `row` plus its update. `next` gets the input of the following product.
pub(super) struct LayerNorm<'a> {
    pub(super) row: &'a mut [f32],
    pub(super) next: &'a mut [f32],
    pub(super) norm: &'a Norm,
    pub(super) update: Update<'a>,
}

/// Update of a row: its part of each panel. No panels add nothing.
#[derive(Clone, Copy)]
pub(super) struct Update<'a> {
    /// Panels of shape `[panels, rows]`.
    pub(super) panels: &'a [PanelRow],
    pub(super) rows: usize,
    pub(super) row: usize,
}

impl WithSimd for LayerNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { row, next, norm, update } = self;
        let count = row.len() as f32;
        update.add_to(simd, row);
        let mean = sum(simd, row) / count;
        let variance = sum_of_squares(simd, row, mean) / count;
        let scale = 1.0 / (variance + norm.epsilon).sqrt();
        let width = row.len() / S::F32_LANES * S::F32_LANES;
        let (row, row_rest) = row.split_at_mut(width);
        let (next, next_rest) = next.split_at_mut(width);
        let [gamma, beta, factor] =
            [&norm.gamma, &norm.beta, &norm.next].map(|of| of.split_at(width));
        let rest = gamma.1.iter().zip(beta.1).zip(factor.1);
        for ((x, next), ((gamma, beta), factor)) in row_rest.iter_mut().zip(next_rest).zip(rest) {
            let normal = (*x - mean) * scale;
            *next = normal * factor;
            *x = normal * gamma + beta;
        }
        let [gamma, beta, factor] = [gamma.0, beta.0, factor.0].map(|of| S::as_simd_f32s(of).0);
        let mean = simd.splat_f32s(mean);
        let scale = simd.splat_f32s(scale);
        let parameters = gamma.iter().zip(beta).zip(factor);
        let rows = S::as_mut_simd_f32s(row).0.iter_mut().zip(S::as_mut_simd_f32s(next).0);
        for ((x, next), ((&gamma, &beta), &factor)) in rows.zip(parameters) {
            let normal = simd.mul_f32s(simd.sub_f32s(*x, mean), scale);
            *next = simd.mul_f32s(normal, factor);
            *x = simd.mul_add_e_f32s(normal, gamma, beta);
        }
    }
}

impl Update<'_> {
    #[inline(always)]
    fn add_to<S: Simd>(self, simd: S, row: &mut [f32]) {
        let panels = self.panels.iter().skip(self.row).step_by(self.rows);
        for (part, update) in row.chunks_mut(PANEL).zip(panels) {
            let (vectors, rest) = S::as_mut_simd_f32s(part);
            let (update, update_rest) =
                S::as_simd_f32s(&update[..vectors.len() * S::F32_LANES + rest.len()]);
            vectors.iter_mut().zip(update).for_each(|(x, &y)| *x = simd.add_f32s(*x, y));
            rest.iter_mut().zip(update_rest).for_each(|(x, y)| *x += y);
        }
    }
}

#[inline(always)]
fn sum<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(row);
    let sum = in_chains(
        simd,
        vectors,
        #[inline(always)]
        |sum, x| simd.add_f32s(sum, x),
    );
    simd.reduce_sum_f32s(sum) + rest.iter().sum::<f32>()
}

/// Returns the sum of `(x - mean)^2`.
#[inline(always)]
fn sum_of_squares<S: Simd>(simd: S, row: &[f32], mean: f32) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(row);
    let mean_of_all = simd.splat_f32s(mean);
    let sum = in_chains(
        simd,
        vectors,
        #[inline(always)]
        |sum, x| {
            let x = simd.sub_f32s(x, mean_of_all);
            simd.mul_add_e_f32s(x, x, sum)
        },
    );
    let rest: f32 = rest.iter().map(|x| (x - mean) * (x - mean)).sum();
    simd.reduce_sum_f32s(sum) + rest
}

/// Adds up vectors with `add`, in four chains that don't wait for each other.
#[inline(always)]
fn in_chains<S: Simd>(
    simd: S,
    vectors: &[S::f32s],
    add: impl Fn(S::f32s, S::f32s) -> S::f32s,
) -> S::f32s {
    let mut sums = [simd.splat_f32s(0.0); 4];
    let (quads, last) = vectors.as_chunks::<4>();
    for quad in quads {
        for i in 0..4 {
            sums[i] = add(sums[i], quad[i]);
        }
    }
    for &vector in last {
        sums[0] = add(sums[0], vector);
    }
    simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes erf by its Taylor series in f64, which is exact enough on the tested range.
    fn exact_gelu(x: f64) -> f64 {
        let z = x / std::f64::consts::SQRT_2;
        let mut term = z;
        let mut sum = z;
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 * x * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI)
    }

    #[test]
    fn gelu_is_the_exact_form() {
        let inputs: Vec<f32> = (-6_400..6_400).map(|step| step as f32 / 1_000.0).collect();
        for (format, most) in [(NumberFormat::F32, 4e-6), (NumberFormat::Int8, 2e-4)] {
            for arch in [Arch::new(), Arch::Scalar] {
                let mut outputs = inputs.clone();
                activate(arch, &mut outputs, Activation::Gelu, format);
                for (x, y) in inputs.iter().zip(outputs) {
                    let error = f64::from(y) - exact_gelu(f64::from(*x));
                    assert!(error.abs() < most, "{format}: gelu({x}) is off by {error}");
                }
            }
            let mut far = [50.0, -50.0, 0.0, 0.0].repeat(4);
            activate(Arch::new(), &mut far, Activation::Gelu, format);
            assert!((far[0] - 50.0).abs() < 2e-3 && far[1].abs() < 2e-3 && far[2] == 0.0);
        }
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

    struct Softmax<'a>(&'a mut [f32], f32);

    impl WithSimd for Softmax<'_> {
        type Output = f32;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            exponentials(simd, self.0, simd.splat_f32s(self.1))
        }
    }

    #[test]
    fn softmax_ignores_minus_infinity() {
        let mut row = vec![1.0, 2.0, 3.0, f32::NEG_INFINITY];
        row.resize(48, f32::NEG_INFINITY);
        let sum = Arch::new().dispatch(Softmax(&mut row, 3.0));
        assert!((sum - row.iter().sum::<f32>()).abs() < 1e-6);
        assert!((row[2] / sum - 0.665_240_96).abs() < 1e-6);
        assert!(row[3..].iter().all(|x| (0.0..1e-30).contains(x)));
    }

    #[test]
    fn exponentials_of_scores_are_close_over_their_range() {
        for arch in [Arch::new(), Arch::Scalar] {
            let scores: Vec<f32> = (0..8_608).map(|step| -0.01 * step as f32).collect();
            let mut row = scores.clone();
            arch.dispatch(Softmax(&mut row, 0.0));
            for (x, y) in scores.iter().zip(&row) {
                let exact = f64::from(*x).exp();
                assert!((f64::from(*y) - exact).abs() < exact * 5e-6, "exp({x}) is {y}");
            }
        }
    }

    /// Tests 37 columns: a remainder that is no whole vector, in one panel.
    #[test]
    fn layer_norm_has_mean_beta_and_deviation_gamma() {
        let ramp: Vec<f32> = (0..37).map(|i| i as f32 * 3.0 - 7.0).collect();
        let (gamma, beta) = (vec![2.0; 37], vec![5.0; 37]);
        let norm = Norm { gamma, beta, next: vec![3.0; 37], epsilon: 1e-12 };
        let mut panels = [[f32::NAN; PANEL]; 3];
        panels[1][..37].copy_from_slice(&ramp);
        let added = Update { panels: &panels, rows: 3, row: 1 };
        let nothing = Update { panels: &[], ..added };
        for (row, update) in [(ramp.clone(), nothing), (vec![0.0; 37], added)] {
            check_normal(row, &norm, update);
        }
    }

    fn check_normal(mut row: Vec<f32>, norm: &Norm, update: Update<'_>) {
        let mut next = [f32::NAN; 37];
        Arch::new().dispatch(LayerNorm { row: &mut row, next: &mut next, norm, update });
        for (next, x) in next.iter().zip(&row) {
            assert!((next / 3.0 - (x - 5.0) / 2.0).abs() < 1e-5);
        }
        let mean = row.iter().sum::<f32>() / 37.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 37.0;
        assert!((mean - 5.0).abs() < 1e-4);
        assert!((variance.sqrt() - 2.0).abs() < 1e-4);
    }
}
