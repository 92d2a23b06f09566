//! Encoder for tests: a bag of words.

use std::time::Instant;

use super::{EmbedFuture, Embedded, Encoder, Flow};

/// Each word is a direction; texts that share words overlap. Of more than 200 bytes, it says that it cut them.
#[derive(Debug, Clone, Copy)]
pub struct WordEncoder;

const DIMENSIONS: usize = 256;

impl Encoder for WordEncoder {
    fn fingerprint(&self) -> &str {
        "words"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let embedded = texts.iter().map(|text| embed(text)).collect();
        Box::pin(std::future::ready(Ok(embedded)))
    }
}

fn embed(text: &str) -> Embedded {
    let mut vector = vec![0.0_f32; DIMENSIONS];
    vector[0] = 0.1;
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        let hash =
            word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) ^ usize::from(byte));
        vector[hash % DIMENSIONS] += 1.0;
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= length);
    Embedded { vector, truncated: text.len() > 200 }
}
