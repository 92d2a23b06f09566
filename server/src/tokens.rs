//! Token counts by cl100k_base, the tokenizer that every figure of the product is counted with.

use tiktoken_rs::cl100k_base_singleton;

/// Name of the tokenizer, as the accounting carries it.
pub const TOKENIZER: &str = "cl100k_base";

/// Tokens of a text; special tokens are counted as the plain text they are.
#[must_use]
pub fn count(text: &str) -> u32 {
    u32::try_from(cl100k_base_singleton().encode_ordinary(text).len()).unwrap_or(u32::MAX)
}

/// Loads the ranks (tens of milliseconds), so that the first call does not pay for it.
pub fn warm_up() {
    let _ = count("");
}
