//! What the description of the search lists of the tools that it finds.

use super::Offer;
use crate::SEARCH_TOOL;

/// Part of the tools that can be found that the description of the search lists.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// Most tokens of it; 0 for no listing at all.
    pub tokens: u32,
    /// Lines that stand for the names of [`Offer::deferred_names`], in the same order; empty to list the names.
    pub lines: &'a [String],
}

impl Listing<'_> {
    /// Most tokens of a listing where nobody says how many.
    pub const TOKENS: u32 = 400;

    /// No listing.
    pub const NONE: Self = Self { tokens: 0, lines: &[] };
}

impl Default for Listing<'_> {
    /// Returns the listing of names within [`Listing::TOKENS`].
    fn default() -> Self {
        Self { tokens: Self::TOKENS, lines: &[] }
    }
}

/// Listing as a description has it.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    /// Names that fit.
    names: Vec<&'a str>,
    /// Lines that fit; empty where the names are listed.
    lines: Vec<&'a str>,
    /// Number of tools that did not fit.
    more: usize,
}

impl<'a> Listed<'a> {
    /// Lists as many tools as there are tokens for.
    pub(super) fn of(offer: &Offer<'a>, count: &dyn Fn(&str) -> u32) -> Self {
        let Offer { deferred_names, listing, .. } = offer;
        let mut left = listing.tokens;
        let mut takes = |text: String| {
            let rest = left.checked_sub(count(&text));
            rest.inspect(|rest| left = *rest).is_some()
        };
        let (names, lines): (Vec<&str>, Vec<&str>) = if listing.lines.is_empty() {
            let fits = |name: &&&str| takes(format!("{name}, "));
            (deferred_names.iter().take_while(fits).copied().collect(), Vec::new())
        } else {
            let all = deferred_names.iter().copied().zip(listing.lines.iter().map(String::as_str));
            all.take_while(|(_, line)| takes(format!("{line}\n"))).unzip()
        };
        let more = deferred_names.len() - names.len();
        Self { names, lines, more }
    }

    /// Returns the description of the search.
    pub(super) fn description(&self) -> String {
        let Self { names, lines, more } = self;
        let search = SEARCH_TOOL.description;
        if names.is_empty() {
            return search.to_owned();
        }
        match (lines.is_empty(), more) {
            (true, 0) => format!("{search} It finds: {}.", names.join(", ")),
            (true, more) => format!("{search} It finds: {}, and {more} more.", names.join(", ")),
            (false, 0) => format!("{search} It finds:\n{}", lines.join("\n")),
            (false, more) => format!("{search} It finds:\n{}\nand {more} more", lines.join("\n")),
        }
    }
}
