//! Transposed keys of a head: a row for each of its columns, a column for each token.

use pulp::Arch;

use super::attention::HeadRows;

/// Multiple to which tokens are padded: the widest vector.
pub(super) const LANES: usize = 16;

/// Transposes `width` columns, a multiple of 16. `to` has `width` rows of as many columns as there are tokens, padded;
/// the values in the padding are arbitrary.
pub(super) fn transpose(arch: Arch, keys: HeadRows<'_>, width: usize, to: &mut [f32]) {
    let columns = to.len() / width;
    #[cfg(target_arch = "x86_64")]
    if let Arch::V4(_) = arch {
        #[allow(unsafe_code, reason = "the instructions were found when this value was made")]
        // SAFETY: `Arch::V4` exists only where `pulp` found AVX-512.
        return unsafe { avx512::transpose(keys, width, to, columns) };
    }
    let _ = arch;
    for token in 0..keys.rows.len() {
        for (key, row) in keys.row(token, width).iter().zip(to.chunks_exact_mut(columns)) {
            row[token] = *key;
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::*;

    use super::{HeadRows, LANES};
    use crate::cpu::avx512::{floats, put};

    #[target_feature(enable = "avx512f")]
    pub(super) fn transpose(keys: HeadRows<'_>, width: usize, to: &mut [f32], columns: usize) {
        for token in (0..columns).step_by(LANES) {
            for column in (0..width).step_by(LANES) {
                let block = transposed(load(keys, token, column));
                for (i, row) in block.into_iter().enumerate() {
                    put(&mut to[(column + i) * columns + token..], row);
                }
            }
        }
    }

    /// Loads sixteen tokens' values from `column` on; zeros after the last token.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(keys: HeadRows<'_>, token: usize, column: usize) -> [__m512; LANES] {
        let mut block = [_mm512_setzero_ps(); LANES];
        for (row, token) in block.iter_mut().zip(token..keys.rows.len()) {
            *row = floats(&keys.row(token, column + LANES)[column..]);
        }
        block
    }

    /// Transposes sixteen rows: pairs, then fours within each quarter of a register, then the quarters.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::cpu) fn transposed(rows: [__m512; LANES]) -> [__m512; LANES] {
        let mut pairs = rows;
        for i in (0..LANES).step_by(2) {
            pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
        }
        let mut fours = rows;
        for i in (0..LANES).step_by(4) {
            for half in 0..2 {
                let [a, b] = [pairs[i + half], pairs[i + half + 2]];
                let a = _mm512_castps_pd(a);
                let b = _mm512_castps_pd(b);
                fours[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                fours[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
            }
        }
        let mut columns = rows;
        for i in 0..4 {
            let even = _mm512_shuffle_f32x4::<0x88>(fours[i], fours[i + 4]);
            let odd = _mm512_shuffle_f32x4::<0xdd>(fours[i], fours[i + 4]);
            let even_below = _mm512_shuffle_f32x4::<0x88>(fours[i + 8], fours[i + 12]);
            let odd_below = _mm512_shuffle_f32x4::<0xdd>(fours[i + 8], fours[i + 12]);
            columns[i] = _mm512_shuffle_f32x4::<0x88>(even, even_below);
            columns[i + 4] = _mm512_shuffle_f32x4::<0x88>(odd, odd_below);
            columns[i + 8] = _mm512_shuffle_f32x4::<0xdd>(even, even_below);
            columns[i + 12] = _mm512_shuffle_f32x4::<0xdd>(odd, odd_below);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernel::{PANEL, PanelRow};

    #[test]
    fn every_value_is_where_it_belongs() {
        for arch in [Arch::new(), Arch::Scalar] {
            for (tokens, column, width) in [(1, 0, 16), (14, 32, 32), (16, 16, 16), (37, 0, 64)] {
                let rows: Vec<PanelRow> = (0..tokens)
                    .map(|token| std::array::from_fn(|i| (token * PANEL + i) as f32))
                    .collect();
                let columns = tokens.next_multiple_of(LANES);
                let mut to = vec![f32::NAN; width * columns];
                transpose(arch, HeadRows { rows: &rows, column }, width, &mut to);
                for (token, row) in rows.iter().enumerate() {
                    for i in 0..width {
                        assert_eq!(to[i * columns + token], row[column + i], "{token}, {i}");
                    }
                }
            }
        }
    }
}
