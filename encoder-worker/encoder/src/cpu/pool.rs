//! Pooling of token vectors into one vector per text.

use crate::model_dir::Pooling;

/// Pools the vectors of one text's tokens, which are `stride` apart and as wide as `out`.
pub(super) fn pool(rows: &[f32], stride: usize, ending: Ending, out: &mut [f32]) {
    let mut rows = rows.chunks_exact(stride);
    if let Some(first) = rows.next() {
        out.copy_from_slice(&first[..out.len()]);
    }
    match ending.pooling {
        Pooling::Cls => {}
        Pooling::Mean => mean(rows, out),
        Pooling::Max => rows.for_each(|row| combine(out, row, f32::max)),
    }
    if ending.normalise {
        scale_to_unit(out);
    }
}

/// Steps after the last layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    pub(super) pooling: Pooling,
    /// True if the result is scaled to length 1.
    pub(super) normalise: bool,
}

fn mean<'a>(rows: impl ExactSizeIterator<Item = &'a [f32]>, out: &mut [f32]) {
    let count = (rows.len() + 1) as f32;
    rows.for_each(|row| combine(out, row, |a, b| a + b));
    out.iter_mut().for_each(|x| *x /= count);
}

fn combine(out: &mut [f32], row: &[f32], with: impl Fn(f32, f32) -> f32) {
    for (x, y) in out.iter_mut().zip(row) {
        *x = with(*x, *y);
    }
}

/// Scales a vector to length 1; a vector of zeros stays zero.
fn scale_to_unit(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let scale = 1.0 / length.max(1e-12);
    vector.iter_mut().for_each(|x| *x *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pooling: Pooling, normalise: bool, want: [[f32; 2]; 2]) {
        let texts = [&[1.0, -2.0, 9.0, 5.0, 4.0, 9.0][..], &[3.0, 4.0, 9.0][..]];
        let pooled = texts.map(|rows| {
            let mut out = [f32::NAN; 2];
            pool(rows, 3, Ending { pooling, normalise }, &mut out);
            out
        });
        for (vector, want) in pooled.iter().zip(want) {
            for (x, want) in vector.iter().zip(want) {
                assert!((x - want).abs() < 1e-6, "{pooling:?}: {pooled:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn every_mode_pools_each_text_alone() {
        check(Pooling::Mean, false, [[3.0, 1.0], [3.0, 4.0]]);
        check(Pooling::Cls, false, [[1.0, -2.0], [3.0, 4.0]]);
        check(Pooling::Max, false, [[5.0, 4.0], [3.0, 4.0]]);
        let half = 0.1_f32.sqrt();
        check(Pooling::Mean, true, [[3.0 * half, half], [0.6, 0.8]]);
    }

    #[test]
    fn zeros_stay_zeros() {
        let mut out = [f32::NAN; 2];
        pool(&[0.0, 0.0], 2, Ending { pooling: Pooling::Mean, normalise: true }, &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }
}
