//! Inner loops: dot products of one query with many rows. They are written once and compiled for the vector
//! instructions of the machine (AVX-512, AVX2 + FMA, NEON, or none), which are chosen at run time. The order of
//! additions does not depend on a row's address, so equal rows score equally.

use pulp::{Arch, Simd, WithSimd};

/// Instruction set for the inner loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel(Arch);

impl Kernel {
    /// Returns the best instruction set of this machine.
    pub(super) fn detect() -> Self {
        Self(Arch::new())
    }

    /// Returns the dot product of two vectors of the same length, computed like [`Kernel::dots`].
    pub(super) fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        let mut out = [0.0];
        self.dots(a, &[0], b, &mut out);
        out[0]
    }

    /// Writes the dot product of `query` with each row in `slots` to `out`. A row has the query's length. Every slot
    /// must lie inside `rows`.
    pub(super) fn dots(self, rows: &[f32], slots: &[u32], query: &[f32], out: &mut [f32]) {
        self.0.dispatch(Dots { rows, slots, query, out });
    }

    /// Writes dot products like [`Kernel::dots`], in integers. The caller ensures that the sums fit in 32 bits.
    pub(super) fn code_dots(self, rows: &[i8], slots: &[u32], query: &[i16], out: &mut [i32]) {
        self.0.dispatch(CodeDots { rows, slots, query, out });
    }

    /// Returns the dot product of two rows of codes of the same length.
    pub(super) fn code_dot(self, a: &[i8], b: &[i8]) -> i32 {
        self.0.dispatch(CodeDot { a, b })
    }
}

fn row<T>(rows: &[T], slot: u32, width: usize) -> &[T] {
    &rows[slot as usize * width..][..width]
}

struct Dots<'a> {
    rows: &'a [f32],
    slots: &'a [u32],
    query: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (slot, out) in self.slots.iter().zip(self.out) {
            *out = dot(simd, row(self.rows, *slot, self.query.len()), self.query);
        }
    }
}

/// Returns the dot product. Four sums run in parallel, because an addition has a latency of four cycles.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let (a_vectors, a_rest) = S::as_simd_f32s(a);
    let (b_vectors, b_rest) = S::as_simd_f32s(b);
    let (a_fours, a_ones) = pulp::as_arrays::<4, _>(a_vectors);
    let (b_fours, b_ones) = pulp::as_arrays::<4, _>(b_vectors);
    let mut sums = [simd.splat_f32s(0.0); 4];
    for (a, b) in a_fours.iter().zip(b_fours) {
        for lane in 0..4 {
            sums[lane] = simd.mul_add_e_f32s(a[lane], b[lane], sums[lane]);
        }
    }
    for (a, b) in a_ones.iter().zip(b_ones) {
        sums[0] = simd.mul_add_e_f32s(*a, *b, sums[0]);
    }
    let pairs = [simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])];
    let whole = simd.reduce_sum_f32s(simd.add_f32s(pairs[0], pairs[1]));
    whole + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

struct CodeDots<'a> {
    rows: &'a [i8],
    slots: &'a [u32],
    query: &'a [i16],
    out: &'a mut [i32],
}

impl WithSimd for CodeDots<'_> {
    type Output = ();

    // No explicit vectors: the compiler turns this sum into pmaddwd at every width.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (slot, out) in self.slots.iter().zip(self.out) {
            let row = row(self.rows, *slot, self.query.len());
            *out = row.iter().zip(self.query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        }
    }
}

struct CodeDot<'a> {
    a: &'a [i8],
    b: &'a [i8],
}

impl WithSimd for CodeDot<'_> {
    type Output = i32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> i32 {
        self.a.iter().zip(self.b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::vectors::samples::Samples;

    /// Returns the portable kernel first, then each one that this machine can run.
    fn kernels() -> Vec<Kernel> {
        let mut kernels = vec![Kernel(Arch::Scalar), Kernel::detect()];
        #[cfg(target_arch = "x86_64")]
        kernels.extend(pulp::x86::V3::try_new().map(|v3| Kernel(Arch::V3(v3))));
        kernels
    }

    #[test]
    fn every_kernel_agrees_with_double_precision() {
        for width in [1, 3, 16, 63, 64, 65, 384, 387] {
            let rows = Samples::new(7, width).unit_rows(5);
            let query = Samples::new(8, width).unit_rows(1);
            let slots = [4, 0, 2, 2, 1];
            for kernel in kernels() {
                let mut out = [f32::NAN; 5];
                kernel.dots(&rows, &slots, &query, &mut out);
                for (slot, out) in slots.iter().zip(out) {
                    let row = row(&rows, *slot, width);
                    let exact: f64 =
                        row.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!((f64::from(out) - exact).abs() < 1e-6, "{kernel:?} at width {width}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_adds_codes_exactly() {
        for width in [1, 31, 384, 385] {
            let mut samples = Samples::new(9, width);
            let codes: Vec<i8> = (0..3 * width).map(|_| samples.code()).collect();
            let query: Vec<i16> = (0..width).map(|_| i16::from(samples.code()) * 258).collect();
            for kernel in kernels() {
                let mut out = [0; 3];
                kernel.code_dots(&codes, &[2, 0, 1], &query, &mut out);
                for (slot, out) in [2, 0, 1].into_iter().zip(out) {
                    let row = row(&codes, slot, width);
                    let exact: i64 =
                        row.iter().zip(&query).map(|(a, b)| i64::from(*a) * i64::from(*b)).sum();
                    assert_eq!(i64::from(out), exact, "{kernel:?} at width {width}");
                }
                let a = row(&codes, 0, width);
                let b = row(&codes, 1, width);
                let exact: i32 = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                assert_eq!(kernel.code_dot(a, b), exact);
            }
        }
    }
}
