//! bf16 weights and activations: an f32 without its lower 16 bits, rounded to nearest, ties to even. Sums are f32.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
mod widened;

use super::kernel::{Format, PANEL};
use crate::device::NumberFormat;

/// Inputs per step: the number that one 32-bit lane of a dot product takes.
const STEP: usize = 2;

/// Two inputs for 64 columns, column by column.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(in crate::cpu) struct Step([u16; STEP * PANEL]);

/// Storage format of weights in bf16.
pub(in crate::cpu) struct Bf16;

impl Format for Bf16 {
    type Step = Step;
    const EMPTY: Step = Step([0; STEP * PANEL]);
    const STEP: usize = STEP;
    const NAME: NumberFormat = NumberFormat::Bf16;

    fn pack(step: &mut Step, index: usize, weight: f32, _: f32) -> f32 {
        step.0[index] = from_f32(weight);
        to_f32(step.0[index])
    }
}

/// Returns the nearest bf16; for finite values only.
#[inline(always)]
pub(super) fn from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[inline(always)]
pub(super) fn to_f32(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_and_ties_to_even() {
        assert_eq!(to_f32(from_f32(1.0)), 1.0);
        assert_eq!(to_f32(from_f32(-0.0)).to_bits(), (-0.0_f32).to_bits());
        // 1 + 2^-8 lies between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
        assert_eq!(to_f32(from_f32(1.0 + 1.0 / 256.0)), 1.0);
        assert_eq!(to_f32(from_f32(1.0 + 3.0 / 256.0)), 1.015_625);
        for i in 0..1_000 {
            let x = (i as f32 - 500.0) * 0.37 + 0.01;
            assert!((to_f32(from_f32(x)) - x).abs() <= x.abs() / 256.0);
        }
    }
}
