//! 8-bit weights and activations, scaled in groups of 128 inputs. A weight is `scale[column] * w`, `w` in
//! -127..=127, by the largest of its column in the group; an activation is `scale[row] * a + zero[row]`,
//! `a` in 0..=LEVELS, by the range of its row in the group. With integer sums `S = sum(a * w)`:
//!
//! `y = bias + sum over groups(scale[row] * scale[column] * S + zero[row] * sum(weights of column))`.
//!
//! A few channels of these models are far larger than all others. With one scale for a whole row they
//! would take the precision of the rest: on the golden texts, groups raise the least cosine to f32 from
//! .992 to .995, and together with the balance of `model` to .998.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod portable;

use pulp::{Arch, Simd, WithSimd};

use super::elementwise::fold;
use super::kernel::{Format, PANEL, RowScale};
use crate::device::NumberFormat;

/// Inputs per step: what one 32-bit lane of a dot product takes.
const STEP: usize = 4;

/// Inputs that share a scale, where activations have 8 bits.
const GROUP: usize = 128;

/// Four inputs for 64 columns, column by column.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(in crate::cpu) struct Step([i8; STEP * PANEL]);

/// How weights are kept.
pub(in crate::cpu) struct Int8;

impl Format for Int8 {
    type Step = Step;
    const EMPTY: Step = Step([0; STEP * PANEL]);
    const STEP: usize = STEP;
    const NAME: NumberFormat = NumberFormat::Int8;

    fn weight_scale(largest: f32) -> f32 {
        if largest > 0.0 { largest / 127.0 } else { 1.0 }
    }

    fn pack(step: &mut Step, index: usize, weight: f32, scale: f32) -> f32 {
        let kept = (weight / scale).round().clamp(-127.0, 127.0);
        step.0[index] = kept as i8;
        kept * scale
    }
}

/// Scales each group of a row to `0..=levels`.
fn keep(grain: Grain, row: &[f32], kept: &mut [u8], scales: &mut [RowScale]) {
    grain.arch.dispatch(Keep { grain, row, kept, scales });
}

/// How finely a kernel keeps activations.
#[derive(Clone, Copy)]
struct Grain {
    arch: Arch,
    /// The greatest kept value.
    levels: f32,
    /// Inputs that share a scale.
    group: usize,
}

struct Keep<'a> {
    grain: Grain,
    row: &'a [f32],
    kept: &'a mut [u8],
    scales: &'a mut [RowScale],
}

impl WithSimd for Keep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Grain { levels, group, .. } = self.grain;
        let groups = self.row.chunks(group).zip(self.kept.chunks_mut(group));
        for ((row, kept), scale) in groups.zip(self.scales) {
            let (low, high) = range(simd, row);
            let step = ((high - low) / levels).max(f32::MIN_POSITIVE);
            let (factor, offset) = (1.0 / step, -low / step);
            for (kept, x) in kept.iter_mut().zip(row) {
                // Not `clamp`: its check of the limits keeps the loop from being vectorised.
                *kept = round_to_u8((x * factor + offset).max(0.0).min(levels));
            }
            *scale = RowScale { scale: step, zero: low };
        }
    }
}

/// The lowest byte of `x + 1.5 * 2^23` is `x`, rounded; this form is vectorised, a cast is not.
#[inline(always)]
fn round_to_u8(x: f32) -> u8 {
    (x + 12_582_912.0).to_bits() as u8
}

/// Least and greatest value of a row, which is a multiple of 16.
#[inline(always)]
fn range<S: Simd>(simd: S, row: &[f32]) -> (f32, f32) {
    let low = fold::<S>(
        row,
        simd.splat_f32s(f32::INFINITY),
        #[inline(always)]
        |low, x| simd.min_f32s(low, x),
    );
    let high = fold::<S>(
        row,
        simd.splat_f32s(f32::NEG_INFINITY),
        #[inline(always)]
        |high, x| simd.max_f32s(high, x),
    );
    (simd.reduce_min_f32s(low), simd.reduce_max_f32s(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grain() -> Grain {
        Grain { arch: Arch::new(), levels: 255.0, group: GROUP }
    }

    #[test]
    fn kept_rows_are_within_half_a_level() {
        for len in [16, 48, 384, 400] {
            let row: Vec<f32> = (0..len).map(|i| ((i * 37) % 101) as f32 * 0.13 - 4.0).collect();
            let mut kept = vec![0; len];
            let mut scales = [RowScale::default(); 4];
            keep(grain(), &row, &mut kept, &mut scales);
            for (i, (x, &a)) in row.iter().zip(&kept).enumerate() {
                let RowScale { scale, zero } = scales[i / GROUP];
                let back = scale * f32::from(a) + zero;
                assert!((back - x).abs() <= scale * 0.51, "{x} became {back}");
            }
            assert!(kept.contains(&0) && kept.contains(&255));
        }
    }

    #[test]
    fn constant_rows_and_wild_values_are_harmless() {
        let mut kept = vec![0; 16];
        let mut scales = [RowScale::default()];
        keep(grain(), &[3.5; 16], &mut kept, &mut scales);
        assert_eq!(scales[0].scale * f32::from(kept[0]) + scales[0].zero, 3.5);
        for wild in [f32::NAN, f32::INFINITY] {
            keep(grain(), &[wild; 16], &mut kept, &mut scales);
        }
    }
}
