//! Quantized embeddings: embeddings of intents in the form in which handles carry them and they are remembered. A quantized embedding has one
//! byte per dimension and the key of its encoder. Ranking decides elsewhere what it is worth.

use sha2::{Digest, Sha256};

/// Maximum number of dimensions of a quantized embedding.
pub const DIMENSIONS_MAX: usize = 4_096;

/// Key that stands for an encoder's fingerprint. Embeddings of different encoders never mix.
pub type EncoderKey = [u8; 8];

/// Embedding in whole numbers from -127 to 127. Its length has no meaning: only directions are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizedEmbedding {
    encoder: EncoderKey,
    values: Box<[i8]>,
    /// Dot product of the values with themselves.
    square: i32,
}

/// Returns the key of the encoder with this fingerprint.
#[must_use]
pub fn encoder_key(fingerprint: &str) -> EncoderKey {
    let digest: [u8; 32] = Sha256::digest(fingerprint.as_bytes()).into();
    digest.first_chunk().copied().unwrap_or_default()
}

impl QuantizedEmbedding {
    /// Returns the quantized embedding of an embedding; `None` if the embedding has no direction or more than [`DIMENSIONS_MAX`]
    /// dimensions.
    #[must_use]
    pub fn of(encoder: EncoderKey, embedding: &[f32]) -> Option<Self> {
        let most = embedding.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let is_finite = embedding.iter().all(|value| value.is_finite());
        if !is_finite || most <= f32::MIN_POSITIVE {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "from -127 to 127 by the scale")]
        let byte = |value: &f32| (value / most * 127.0).round() as i8;
        Self::checked(encoder, embedding.iter().map(byte).collect())
    }

    /// Reads a quantized embedding from its bytes; `None` if no quantized embedding has these bytes.
    #[must_use]
    pub fn read(encoder: EncoderKey, bytes: &[u8]) -> Option<Self> {
        Self::checked(encoder, bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    fn checked(encoder: EncoderKey, values: Box<[i8]>) -> Option<Self> {
        let fits = values.len() <= DIMENSIONS_MAX;
        let square = if fits { dot(&values, &values) } else { 0 };
        (square > 0).then_some(Self { encoder, values, square })
    }

    /// Returns the key of the encoder that made the embedding.
    #[must_use]
    pub fn encoder(&self) -> EncoderKey {
        self.encoder
    }

    /// Returns the values as bytes, which [`QuantizedEmbedding::read`] accepts.
    pub fn bytes(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.values.iter().map(|value| value.cast_unsigned())
    }

    /// Returns the cosine with another quantized embedding, -1 to 1; `None` if their encoders or dimensions differ.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> Option<f32> {
        let alike = self.encoder == other.encoder && self.values.len() == other.values.len();
        alike.then(|| {
            let squares = f64::from(self.square) * f64::from(other.square);
            (f64::from(dot(&self.values, &other.values)) / squares.sqrt()) as f32
        })
    }
}

/// Returns the dot product. It is at most [`DIMENSIONS_MAX`] x 128 x 128, which 32 bits hold.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENCODER: EncoderKey = [1; 8];

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn rejects_values_without_a_direction() {
        for embedding in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
            assert_eq!(QuantizedEmbedding::of(ENCODER, &embedding), None, "{embedding:?}");
        }
        assert_eq!(QuantizedEmbedding::of(ENCODER, &vec![1.0; DIMENSIONS_MAX + 1]), None);
        assert!(QuantizedEmbedding::of(ENCODER, &vec![1.0; DIMENSIONS_MAX]).is_some());
        for bytes in [vec![], vec![0; 8], vec![1; DIMENSIONS_MAX + 1]] {
            assert_eq!(QuantizedEmbedding::read(ENCODER, &bytes), None);
        }
    }

    #[test]
    fn encoders_do_not_mix() {
        let of = |encoder| QuantizedEmbedding::of(encoder, &[1.0, 0.5]).expect("a direction");
        assert_eq!(of(ENCODER).cosine(&of([2; 8])), None);
        assert_eq!(
            of(ENCODER).cosine(&QuantizedEmbedding::of(ENCODER, &[1.0]).expect("a direction")),
            None
        );
        assert_ne!(encoder_key("a"), encoder_key("b"));
    }

    proptest! {
        #[test]
        fn cosines_are_kept_and_bytes_read_back(
            a in prop::collection::vec(-1.0_f32..1.0, 64),
            b in prop::collection::vec(-1.0_f32..1.0, 64),
        ) {
            let of = |embedding: &[f32]| QuantizedEmbedding::of(ENCODER, embedding).expect("a direction");
            let one = of(&a);
            let other = of(&b);
            let near = one.cosine(&other).expect("of one encoder");
            prop_assert!((near - cosine(&a, &b)).abs() < 0.02, "{near}");
            let bytes: Vec<u8> = one.bytes().collect();
            prop_assert_eq!(QuantizedEmbedding::read(ENCODER, &bytes), Some(one));
        }
    }
}
