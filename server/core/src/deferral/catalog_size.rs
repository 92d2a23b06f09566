//! Size of a catalog, and whether it is so small that deferral hardly pays.

/// Number of tools up to which a catalog is small.
const FEW_TOOLS: usize = 50;

/// Tokens of all definitions up to which a catalog is small, whatever the number of its tools.
const FEW_TOKENS: u64 = 20_000;

/// Tokens of the largest definition of a small catalog.
const LARGEST_DEFINITION: u32 = 2_000;

/// Size of a catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogSize {
    /// Number of tools.
    pub tools: usize,
    /// Tokens of all definitions.
    pub tokens: u64,
    /// Tokens of the largest definition.
    pub largest: u32,
}

impl CatalogSize {
    /// Largest number of tokens of a small catalog.
    pub const SMALL_MAX: u64 = FEW_TOOLS as u64 * LARGEST_DEFINITION as u64;

    /// Adds up the tokens of definitions.
    pub fn of(definitions: impl IntoIterator<Item = u32>) -> Self {
        let mut size = Self::default();
        for tokens in definitions {
            size.tools += 1;
            size.tokens = size.tokens.saturating_add(tokens.into());
            size.largest = size.largest.max(tokens);
        }
        size
    }

    /// Returns true if all tools may as well be loaded: no definition has more than 2,000 tokens, and there are at most
    /// 50 tools, or at most 20,000 tokens in all. False for an empty catalog.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let is_few = self.tools <= FEW_TOOLS || self.tokens <= FEW_TOKENS;
        self.tools > 0 && self.largest <= LARGEST_DEFINITION && is_few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_small_by_its_tools_or_its_tokens_unless_one_is_large() {
        let size = |tools, tokens, largest| CatalogSize { tools, tokens, largest };
        assert_eq!(CatalogSize::of([300, 1_000, 2]), size(3, 1_302, 1_000));
        assert!(!CatalogSize::of([]).is_small());
        assert!(size(50, 100_000, 2_000).is_small());
        assert!(!size(50, 2_001, 2_001).is_small());
        assert!(!size(51, 20_001, 500).is_small());
        assert!(size(51, 20_000, 500).is_small());
        assert_eq!(CatalogSize::SMALL_MAX, 100_000);
    }
}
