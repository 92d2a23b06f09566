//! Token counts by cl100k_base, the tokenizer for every figure of the product.

use tiktoken_rs::cl100k_base_singleton;

/// Name of the tokenizer in the accounting.
pub const TOKENIZER: &str = "cl100k_base";

/// Maximum size in bytes of a text that is counted. A run of equal letters costs most, about a microsecond a byte.
const COUNTED_MAX: usize = 64 << 10;

/// Counts the tokens of a text. Special tokens are counted as the plain text they are. A text beyond 64 KiB is
/// estimated.
#[must_use]
pub fn count(text: &str) -> u32 {
    if text.len() > COUNTED_MAX {
        return estimate(text);
    }
    u32::try_from(cl100k_base_singleton().encode_ordinary(text).len()).unwrap_or(u32::MAX)
}

/// Estimates the tokens of a text without looking at it closely: one per 2.5 characters, which is more than definitions
/// have.
#[must_use]
pub fn estimate(text: &str) -> u32 {
    let tokens = (text.chars().count() * 2).div_ceil(5);
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Loads the tokenizer's ranks (tens of milliseconds), so that the first call does not pay for it.
pub fn warm_up() {
    let _ = count("");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_estimated_on_the_safe_side() {
        let definition = r#"{"name":"git_log","description":"Shows the commit log."}"#;
        assert!(count(definition) < estimate(definition));
        let long = definition.repeat(2_000);
        assert_eq!(count(&long), estimate(&long));
        assert_eq!((estimate(""), estimate("ab"), estimate("abcde")), (0, 1, 2));
    }
}
