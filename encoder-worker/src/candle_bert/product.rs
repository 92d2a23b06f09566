//! A small matrix product for attention, where the matrices are a head wide and calling out to the
//! big one costs more than the arithmetic. Vector types come from `pulp`; no threads, no tensors.

use pulp::{Simd, WithSimd};

/// Columns that one tile spans at most: two vectors of the widest kind. `columns` must be a multiple.
pub(super) const TILE_COLUMNS: usize = 32;

/// `out = a x b`, all row-major.
pub(super) struct Product<'a> {
    /// `rows` rows, `inner` used columns, `a_stride` apart.
    pub(super) a: &'a [f32],
    pub(super) a_stride: usize,
    /// `inner` rows of `columns`, without gaps.
    pub(super) b: &'a [f32],
    /// `rows` rows of `columns`, without gaps.
    pub(super) out: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) inner: usize,
    /// A multiple of [`TILE_COLUMNS`].
    pub(super) columns: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut row = 0;
        while row + 4 <= self.rows {
            self.row_of_tiles::<S, 4>(simd, row);
            row += 4;
        }
        while row < self.rows {
            self.row_of_tiles::<S, 1>(simd, row);
            row += 1;
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn row_of_tiles<S: Simd, const ROWS: usize>(&mut self, simd: S, row: usize) {
        let mut column = 0;
        while column < self.columns {
            self.tile::<S, ROWS>(simd, row, column);
            column += 2 * S::F32_LANES;
        }
    }

    /// `ROWS` x two vectors of the output, kept in registers until done.
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(&mut self, simd: S, row: usize, column: usize) {
        let a: [&[f32]; ROWS] =
            std::array::from_fn(|r| &self.a[(row + r) * self.a_stride..][..self.inner]);
        let mut sums = [[simd.splat_f32s(0.0); 2]; ROWS];
        for k in 0..self.inner {
            let b = &self.b[k * self.columns + column..][..2 * S::F32_LANES];
            let (b, _) = S::as_simd_f32s(b);
            for (row, sums) in a.iter().zip(&mut sums) {
                let x = simd.splat_f32s(row[k]);
                sums[0] = simd.mul_add_f32s(x, b[0], sums[0]);
                sums[1] = simd.mul_add_f32s(x, b[1], sums[1]);
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let out = &mut self.out[(row + r) * self.columns + column..][..2 * S::F32_LANES];
            let (out, _) = S::as_mut_simd_f32s(out);
            out.copy_from_slice(&sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: usize, inner: usize, columns: usize) {
        let a_stride = inner + 3;
        let a: Vec<f32> = (0..rows * a_stride).map(|i| (i % 13) as f32 - 6.0).collect();
        let b: Vec<f32> = (0..inner * columns).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut out = vec![f32::NAN; rows * columns];
        pulp::Arch::new().dispatch(Product {
            a: &a,
            a_stride,
            b: &b,
            out: &mut out,
            rows,
            inner,
            columns,
        });
        for row in 0..rows {
            for column in 0..columns {
                let want: f32 =
                    (0..inner).map(|k| a[row * a_stride + k] * b[k * columns + column]).sum();
                assert_eq!(out[row * columns + column], want, "at {row}, {column}");
            }
        }
    }

    #[test]
    fn products_of_every_shape_are_exact_on_small_integers() {
        check(1, 1, 32);
        check(4, 32, 64);
        check(7, 33, 32);
        check(66, 5, 96);
    }
}
