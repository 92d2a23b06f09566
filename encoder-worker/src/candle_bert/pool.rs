//! From token vectors to one vector a text.

use crate::model_dir::Pooling;

/// `hidden` holds the vectors of all tokens; `bounds` says which belong to which text.
pub(super) fn pool(
    hidden: &[f32],
    bounds: &[usize],
    pooling: Pooling,
    normalise: bool,
) -> Vec<Vec<f32>> {
    let tokens = bounds.last().copied().unwrap_or_default();
    let width = hidden.len().checked_div(tokens).unwrap_or_default();
    bounds
        .windows(2)
        .map(|text| {
            let mut vector = pool_one(&hidden[text[0] * width..text[1] * width], width, pooling);
            if normalise {
                scale_to_unit(&mut vector);
            }
            vector
        })
        .collect()
}

fn pool_one(rows: &[f32], width: usize, pooling: Pooling) -> Vec<f32> {
    let mut rows = rows.chunks_exact(width);
    let mut vector = rows.next().map(<[f32]>::to_vec).unwrap_or_default();
    let combine = match pooling {
        Pooling::Cls => return vector,
        Pooling::Mean => |a: f32, b: f32| a + b,
        Pooling::Max => f32::max,
    };
    let mut count = 1.0;
    for row in rows {
        for (x, y) in vector.iter_mut().zip(row) {
            *x = combine(*x, *y);
        }
        count += 1.0;
    }
    if pooling == Pooling::Mean {
        vector.iter_mut().for_each(|x| *x /= count);
    }
    vector
}

/// A vector of zeros stays one.
fn scale_to_unit(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let scale = 1.0 / length.max(1e-12);
    vector.iter_mut().for_each(|x| *x *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pooling: Pooling, normalise: bool, want: [[f32; 2]; 2]) {
        let hidden = [1.0, -2.0, 5.0, 4.0, 3.0, 4.0];
        let pooled = pool(&hidden, &[0, 2, 3], pooling, normalise);
        for (vector, want) in pooled.iter().zip(want) {
            for (x, want) in vector.iter().zip(want) {
                assert!((x - want).abs() < 1e-6, "{pooling:?}: {pooled:?}, not {want:?}");
            }
        }
        assert_eq!(pooled.len(), 2);
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
        assert_eq!(pool(&[0.0, 0.0], &[0, 1], Pooling::Mean, true), [[0.0, 0.0]]);
    }
}
