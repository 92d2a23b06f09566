//! A small matrix product in f32 for attention, where the matrices are a head wide. Vector types come
//! from `pulp`.

use pulp::{Simd, WithSimd};

use super::kernel::{blocks, for_rows};

/// Rows of one tile: 12 sums of AVX2's 16 registers.
const ROWS: usize = 6;

/// Rows that lie `stride` apart in `values`.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
}

/// `out = a x b`, all row-major.
pub(super) struct Product<'a> {
    pub(super) a: Strided<'a>,
    pub(super) b: Strided<'a>,
    /// Rows of `columns`, without gaps.
    pub(super) out: &'a mut [f32],
    /// Columns of `a` and rows of `b` that are used.
    pub(super) inner: usize,
    /// A multiple of 16.
    pub(super) columns: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (row, len) in blocks(self.out.len() / self.columns, ROWS) {
            for_rows!(len, [1, 2, 3, 4, 5], 6, self.row_of_tiles::<S, N>(simd, row));
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn row_of_tiles<S: Simd, const N: usize>(&mut self, simd: S, row: usize) {
        let mut column = 0;
        while column + 2 * S::F32_LANES <= self.columns {
            self.tile::<S, N, 2>(simd, row, column);
            column += 2 * S::F32_LANES;
        }
        while column < self.columns {
            self.tile::<S, N, 1>(simd, row, column);
            column += S::F32_LANES;
        }
    }

    /// `N` rows by `V` vectors of the output, kept in registers until done.
    #[inline(always)]
    fn tile<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let a: [&[f32]; N] =
            std::array::from_fn(|r| &self.a.values[(row + r) * self.a.stride..][..self.inner]);
        let mut sums = [[simd.splat_f32s(0.0); V]; N];
        for k in 0..self.inner {
            let b = &self.b.values[k * self.b.stride + column..][..V * S::F32_LANES];
            let (b, _) = S::as_simd_f32s(b);
            for (row, sums) in a.iter().zip(&mut sums) {
                let x = simd.splat_f32s(row[k]);
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = simd.mul_add_f32s(x, b, *sum);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let out = &mut self.out[(row + r) * self.columns + column..][..V * S::F32_LANES];
            let (out, _) = S::as_mut_simd_f32s(out);
            out.copy_from_slice(&sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arch: pulp::Arch, [rows, inner, columns]: [usize; 3]) {
        let (a_stride, b_stride) = (inner + 3, columns + 5);
        let a: Vec<f32> = (0..rows * a_stride).map(|i| (i % 13) as f32 - 6.0).collect();
        let b: Vec<f32> = (0..inner * b_stride).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut out = vec![f32::NAN; rows * columns];
        arch.dispatch(Product {
            a: Strided { values: &a, stride: a_stride },
            b: Strided { values: &b, stride: b_stride },
            out: &mut out,
            inner,
            columns,
        });
        for row in 0..rows {
            for column in 0..columns {
                let want: f32 =
                    (0..inner).map(|k| a[row * a_stride + k] * b[k * b_stride + column]).sum();
                assert_eq!(out[row * columns + column], want, "at {row}, {column}");
            }
        }
    }

    #[test]
    fn products_of_every_shape_are_exact_on_small_integers() {
        for arch in [pulp::Arch::new(), pulp::Arch::Scalar] {
            for shape in [[1, 1, 16], [4, 32, 64], [7, 33, 32], [66, 5, 48]] {
                check(arch, shape);
            }
        }
    }
}
