//! Deterministic encoder that can be made to fail. Each word is a fixed direction in 64 dimensions, and a text is the
//! sum of its words at unit length. Texts that share words are near each other, and others are not.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

use sha2::{Digest, Sha256};
use toolgate_core::error::Error;
use toolgate_routing::encoder::{EmbedFuture, Embedded, Encoder, Flow};

pub const DIMENSIONS: usize = 64;

/// Behaviour of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    Works,
    /// Fails at once, like an encoder that can't be reached.
    Fails,
    /// Never answers.
    Hangs,
    /// Fails at the caller's deadline, like an encoder with a long queue.
    Late,
}

pub struct FakeEncoder {
    fingerprint: String,
    mode: AtomicU8,
    texts: AtomicUsize,
}

impl FakeEncoder {
    pub fn new(fingerprint: &str) -> Self {
        Self {
            fingerprint: fingerprint.to_owned(),
            mode: AtomicU8::new(Mode::Works as u8),
            texts: AtomicUsize::new(0),
        }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Returns the number of texts embedded since the last call.
    pub fn take_count(&self) -> usize {
        self.texts.swap(0, Ordering::SeqCst)
    }
}

impl Encoder for FakeEncoder {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: Vec<String>, _: Flow, deadline: Option<Instant>) -> EmbedFuture<'_> {
        Box::pin(async move {
            let mode = self.mode.load(Ordering::SeqCst);
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(Error::DeadlineExceeded);
            }
            if mode == Mode::Fails as u8 {
                return Err(Error::EncoderUnavailable("told to fail".into()));
            }
            if mode == Mode::Late as u8
                && let Some(deadline) = deadline
            {
                tokio::time::sleep_until(deadline.into()).await;
                return Err(Error::DeadlineExceeded);
            }
            if mode == Mode::Hangs as u8 || mode == Mode::Late as u8 {
                std::future::pending::<()>().await;
            }
            self.texts.fetch_add(texts.len(), Ordering::SeqCst);
            let embedded = |text: &String| Embedded { vector: embed(text), truncated: false };
            Ok(texts.iter().map(embedded).collect())
        })
    }
}

/// Returns the embedding of a text. Never fails: a text without words has a direction of its own.
pub fn embed(text: &str) -> Vec<f32> {
    let mut sum = vec![0.0_f32; DIMENSIONS];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        add(&mut sum, word);
    }
    let mut length = norm(&sum);
    if length < 1e-3 {
        add(&mut sum, "\0nothing");
        length = norm(&sum);
    }
    sum.iter().map(|value| value / length).collect()
}

/// Returns the cosine of two unit vectors.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds a word's direction: every coordinate is +1 or -1, from the bits of its hash.
fn add(sum: &mut [f32], word: &str) {
    let digest = Sha256::digest(word.as_bytes());
    for (i, value) in sum.iter_mut().enumerate() {
        *value += if digest[i / 8] >> (i % 8) & 1 == 1 { 1.0 } else { -1.0 };
    }
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|value| value * value).sum::<f32>().sqrt()
}
