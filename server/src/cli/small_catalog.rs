//! Advice for catalogs that are so small that deferral hardly pays.

use super::text::{counted, grouped};
use toolgate_core::deferral::CatalogSize;

/// Returns advice to load all tools of a small catalog, with its figures; empty for a larger one.
pub(super) fn advice(size: CatalogSize) -> String {
    if !size.is_small() {
        return String::new();
    }
    format!(
        "The catalog is small: {} of {} tokens in all, the largest of {}. Loading all of it costs about what finding \
         tools saves: deferral.mode \"off\" sends everything, and a request can ask for it too.\n",
        counted(size.tools, "tool"),
        grouped(size.tokens),
        grouped(size.largest.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_catalog_is_advised_on() {
        let small = CatalogSize { tools: 1, tokens: 1_200, largest: 1_200 };
        let text = advice(small);
        let figures = "1 tool of 1,200 tokens in all, the largest of 1,200";
        assert!(text.contains(figures) && text.contains("deferral.mode"), "{text}");
        assert_eq!(advice(CatalogSize { largest: 2_001, ..small }), "");
    }
}
