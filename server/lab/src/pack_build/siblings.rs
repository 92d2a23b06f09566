//! Similar tools that a tool must be told apart from: those of its MCP server that share most words with it.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::lint::tool::{Tool, distinct_terms};

/// Maximum number of siblings in a prompt.
const SIBLINGS_MAX: usize = 12;

/// Tools, and the terms of each tool's name and description.
#[derive(Debug)]
pub struct Siblings<'a> {
    tools: &'a [Tool<'a>],
    terms: Vec<HashSet<String>>,
}

impl<'a> Siblings<'a> {
    /// Collects the terms of these tools.
    #[must_use]
    pub fn of(tools: &'a [Tool<'a>]) -> Self {
        let terms = |tool: &Tool<'_>| {
            distinct_terms(&format!("{} {}", tool.name, tool.definition.description()))
        };
        Self { tools, terms: tools.iter().map(terms).collect() }
    }

    /// Returns the siblings of the tool at an index, most similar first.
    #[must_use]
    pub fn near(&self, place: usize) -> Vec<&'a Tool<'a>> {
        let own = &self.tools[place];
        let terms = &self.terms[place];
        let is_sibling = |other: &usize| *other != place && self.tools[*other].server == own.server;
        let mut near: Vec<usize> = (0..self.tools.len()).filter(is_sibling).collect();
        near.sort_by_cached_key(|other| Reverse(self.terms[*other].intersection(terms).count()));
        near.into_iter().take(SIBLINGS_MAX).map(|other| &self.tools[other]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    #[test]
    fn the_nearest_come_first() {
        let stock = stock(&[
            ("bake_bread", "Bakes a loaf in the oven."),
            ("feed_cat", "Gives the cat some food."),
            ("slice_bread", "Cuts a loaf."),
        ]);
        let tools = Tool::all(&stock);
        let siblings = Siblings::of(&tools);
        let near: Vec<_> = siblings.near(0).iter().map(|tool| tool.name).collect();
        assert_eq!(near, ["slice_bread", "feed_cat"]);
    }
}
