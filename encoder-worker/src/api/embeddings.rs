//! Embeddings as bytes of an answer, in f32 or in half precision.

use half::f16;
use half::slice::HalfFloatSliceExt as _;
use toolgate_encoder::Embedding;

/// Bits of a half-precision number without its sign.
const MAGNITUDE: u16 = 0x7fff;

/// Bits of 2 to the power of -6. If an embedding's largest number is at least that, the rounding of its small ones is too
/// little to change its cosine. It is so for every embedding of unit length with up to 4,096 numbers.
const LARGEST_MIN: u16 = 0x2400;

/// Bits of infinity, above which are those of what is not a number.
const INFINITY: u16 = 0x7c00;

/// Returns the little-endian f32 of all embeddings.
pub(super) fn singles(embedded: &[Embedding]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers_of(embedded) * size_of::<f32>());
    for value in embedded.iter().flat_map(|one| &one.vector) {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Returns the embeddings in little-endian half precision: each number is rounded by 2 to the power of -11 of itself at
/// most, so that the cosine with the f32 embedding is at least .9999. `None` if an embedding is too small or too large
/// for that.
pub(super) fn halves(embedded: &[Embedding]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(numbers_of(embedded) * size_of::<f16>());
    let mut halves = Vec::new();
    for Embedding { vector, .. } in embedded {
        halves.resize(vector.len(), f16::ZERO);
        halves.convert_from_f32_slice(vector);
        let largest = halves.iter().map(|half| half.to_bits() & MAGNITUDE).max()?;
        if !(LARGEST_MIN..INFINITY).contains(&largest) {
            return None;
        }
        for half in &halves {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
    }
    Some(bytes)
}

fn numbers_of(embedded: &[Embedding]) -> usize {
    embedded.iter().map(|one| one.vector.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedding(vector: Vec<f32>) -> Embedding {
        Embedding { vector, tokens: 1, truncated: false }
    }

    fn cosine(one: &[f32], other: &[f32]) -> f64 {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
    }

    /// Returns the numbers of the embedding that is sent in half precision.
    fn sent(vector: &[f32]) -> Option<Vec<f32>> {
        let bytes = halves(&[embedding(vector.to_vec())])?;
        assert_eq!(bytes.len(), 2 * vector.len());
        let (numbers, _) = bytes.as_chunks();
        Some(numbers.iter().map(|number| f16::from_le_bytes(*number).to_f32()).collect())
    }

    #[test]
    fn half_precision_keeps_the_cosine() {
        for dimensions in [1_u16, 2, 384, 4_096] {
            // From equal numbers to a few large ones and many below the smallest normal half.
            for power in [0, 1, 3, 9] {
                let raw = |i: u16| {
                    let x = f32::from(i + 1) / f32::from(dimensions);
                    if i.is_multiple_of(2) { x.powi(power) } else { -x.powi(power) }
                };
                let mut vector: Vec<f32> = (0..dimensions).map(raw).collect();
                let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
                vector.iter_mut().for_each(|x| *x /= length * 1.000_1);
                for scale in [1.0, 30.0] {
                    let scaled: Vec<f32> = vector.iter().map(|x| x * scale).collect();
                    match sent(&scaled) {
                        Some(found) => {
                            let cosine = cosine(&scaled, &found);
                            assert!(cosine > 0.999_999, "{dimensions}, {power}: {cosine}");
                        }
                        None => {
                            assert_eq!((dimensions, power), (4_096, 0), "all of them too small");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_half_precision_can_not_hold_is_left_to_f32() {
        for wrong in [0.0, 1e-3, 65_520.0, f32::INFINITY, f32::NAN] {
            assert_eq!(sent(&[wrong, 1e-6]), None, "{wrong}");
        }
        assert!(sent(&[65_504.0, 1e-6]).is_some() && sent(&[-0.015_625, 0.0]).is_some());
        let one_too_large = [embedding(vec![1.0]), embedding(vec![1e6])];
        assert_eq!(halves(&one_too_large), None);
    }

    #[test]
    fn numbers_follow_text_by_text() {
        let embedded = [embedding(vec![1.0, 2.0]), embedding(vec![-1.0, 0.5])];
        let of = |values: [f32; 4]| values.map(f32::to_le_bytes).concat();
        assert_eq!(singles(&embedded), of([1.0, 2.0, -1.0, 0.5]));
        assert_eq!(halves(&embedded), Some(vec![0, 0x3c, 0, 0x40, 0, 0xbc, 0, 0x38]));
    }
}
