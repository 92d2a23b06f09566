//! Types with a closed set of values, each of which has a word in the configuration.

use toolgate_encoder::NumberFormat;
use toolgate_model_hub::KnownModel;

use super::components::{AuthMethod, LogFormat, LogLevel};

/// Type of a key that takes one of some words.
pub(crate) trait Choice: Copy + 'static {
    /// Words of the values, in the order in which people read them.
    const WORDS: &'static [&'static str];
    /// Values, in the order of their words.
    const VALUES: &'static [Self];

    /// Returns the value of one of [`Choice::WORDS`]; `None` for another word.
    fn named(word: &str) -> Option<Self> {
        let index = Self::WORDS.iter().position(|one| *one == word)?;
        Self::VALUES.get(index).copied()
    }
}

impl Choice for KnownModel {
    const WORDS: &'static [&'static str] = &Self::NAMES;
    const VALUES: &'static [Self] = &Self::ALL;
}

impl Choice for NumberFormat {
    const WORDS: &'static [&'static str] = &["auto", "f32", "bf16", "int8"];
    const VALUES: &'static [Self] = &[Self::Auto, Self::F32, Self::Bf16, Self::Int8];
}

impl Choice for LogLevel {
    const WORDS: &'static [&'static str] = &["error", "warn", "info", "debug", "trace"];
    const VALUES: &'static [Self] =
        &[Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];
}

impl Choice for LogFormat {
    const WORDS: &'static [&'static str] = &["text", "json"];
    const VALUES: &'static [Self] = &[Self::Text, Self::Json];
}

impl Choice for AuthMethod {
    const WORDS: &'static [&'static str] = &Self::NAMES;
    const VALUES: &'static [Self] = &[Self::ApiKey, Self::Jwt, Self::Mtls];
}
