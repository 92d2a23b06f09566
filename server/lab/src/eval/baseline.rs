//! Plain summaries, with which the product's own are compared: `name: description` from the file, cut to the same
//! number of tokens.

use tiktoken_rs::cl100k_base_singleton;

use toolgate_routing::catalog::definition::Definition;
use toolgate_routing::catalog::summary::SUMMARY_TOKENS_MAX;
use toolgate_store::StoredCatalog;

/// Returns the first [`SUMMARY_TOKENS_MAX`] tokens of `name: description` (Tool Attention, phase 1, taken literally).
#[must_use]
pub fn plain_summary(name: &str, description: &str) -> String {
    let text = format!("{name}: {description}");
    let ranks = cl100k_base_singleton();
    let tokens = ranks.encode_ordinary(&text);
    let kept = &tokens[..tokens.len().min(SUMMARY_TOKENS_MAX as usize)];
    // A cut may fall inside a character; encoding never makes tokens that can't be decoded.
    let bytes = ranks.decode_bytes(kept).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\u{fffd}').to_owned()
}

/// Returns the same catalog with plain summaries.
#[must_use]
pub fn plain(catalog: &StoredCatalog) -> StoredCatalog {
    let mut plain = catalog.clone();
    for tool in &mut plain.tools {
        let definition = Definition::parse(&tool.record.definition);
        let description = definition.as_ref().map_or("", Definition::description);
        tool.record.summary = plain_summary(tool.record.name.as_str(), description);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::tokens;

    #[test]
    fn the_text_is_cut_on_a_token() {
        assert_eq!(plain_summary("git_log", "Shows\nlogs."), "git_log: Shows\nlogs.");
        let long = plain_summary("t", &"word ".repeat(100));
        assert_eq!(tokens::count(&long), SUMMARY_TOKENS_MAX);
        let crabs = plain_summary("t", &"🦀".repeat(100));
        assert!(tokens::count(&crabs) <= SUMMARY_TOKENS_MAX && crabs.ends_with('🦀'));
    }
}
