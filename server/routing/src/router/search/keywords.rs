//! Keyword search over names, hints and descriptions, with the weights of the published tool search.

use std::cmp::Reverse;

use fixedbitset::FixedBitSet;

use super::grammar::Term;
use crate::catalog::summary::humanise;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;

/// Weights that a term adds to a tool's score.
mod weight {
    /// Term that is a part of the name: of an MCP tool, then of a built-in tool.
    pub(super) const PART: [u32; 2] = [12, 10];
    /// Term within a part of the name: of an MCP tool, then of a built-in tool.
    pub(super) const WITHIN_PART: [u32; 2] = [6, 5];
    /// Term within the whole name, if no other term has matched yet.
    pub(super) const WITHIN_NAME: u32 = 3;
    /// Term that is a word of the search hint.
    pub(super) const HINT: u32 = 4;
    /// Term that is a word of the description.
    pub(super) const DESCRIPTION: u32 = 2;
}

/// Tool that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeywordHit {
    /// Slot of the tool.
    pub(super) slot: u32,
    /// Sum of the weights; above 0. For an untrusted tool, each term counts at most as a word of the description. A
    /// third party must not put its own tools first by what it says of them.
    pub(super) score: u32,
    /// Sum of the weights without this limit for untrusted tools.
    weighed: u32,
}

/// Result of a keyword search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeywordHits {
    /// Hits, best score first. Among equal scores, untrusted tools come last. The order then goes by deferrable tools
    /// first, highest unlimited score, fewest parts of the name, and slot.
    pub(super) hits: Vec<KeywordHit>,
    /// Number of tools that match a term but lack a required one.
    pub(super) lacking_required: u32,
}

/// Scores every allowed tool against the terms.
pub(super) fn search(
    snapshot: &Snapshot,
    terms: &[Term],
    allowed: Option<&FixedBitSet>,
) -> KeywordHits {
    let mut found = KeywordHits::default();
    for (slot, tool) in (0u32..).zip(&snapshot.tools) {
        if !allowed.is_none_or(|set| set.contains(slot as usize)) {
            continue;
        }
        match score(tool, terms) {
            Some((0, _)) => {}
            Some((score, weighed)) => found.hits.push(KeywordHit { slot, score, weighed }),
            None => found.lacking_required += 1,
        }
    }
    found.hits.sort_by_cached_key(|hit| {
        let tool = snapshot.tool(hit.slot);
        let best = (Reverse(hit.score), tool.untrusted);
        (best, !tool.deferrable, Reverse(hit.weighed), Name::of(tool).parts.len(), hit.slot)
    });
    found
}

/// Returns the tool's score and the sum of all weights. Returns `None` if it matches a term but lacks a required one.
fn score(tool: &Tool, terms: &[Term]) -> Option<(u32, u32)> {
    let name = Name::of(tool);
    let most = if tool.untrusted { weight::DESCRIPTION } else { u32::MAX };
    let mut score = 0;
    let mut weighed = 0;
    let mut lacks = false;
    for term in terms {
        let gained = name.weigh(&term.text, weighed) + weigh_texts(tool, &term.text);
        // The whole name counts for a required term even where it adds nothing to the score.
        lacks |= term.required && gained == 0 && !name.whole.contains(&term.text);
        weighed += gained;
        score += gained.min(most);
    }
    match (lacks, score) {
        (true, 0) => Some((0, 0)),
        (true, _) => None,
        (false, score) => Some((score, weighed)),
    }
}

fn weigh_texts(tool: &Tool, term: &str) -> u32 {
    let hint = if has_word(&tool.search_hint, term) { weight::HINT } else { 0 };
    let description = tool.definition.description();
    hint + if has_word(description, term) { weight::DESCRIPTION } else { 0 }
}

/// Name of a tool, split once for all terms.
struct Name {
    whole: String,
    parts: Vec<String>,
    kind: usize,
}

impl Name {
    fn of(tool: &Tool) -> Self {
        let server = tool.id.server.as_str();
        let name = tool.id.name.as_str();
        let parts = parts_of(server).chain(parts_of(name)).collect();
        Self { whole: tool.model_name.to_lowercase(), parts, kind: usize::from(tool.built_in) }
    }

    fn weigh(&self, term: &str, score: u32) -> u32 {
        if self.parts.iter().any(|part| part == term) {
            weight::PART[self.kind]
        } else if self.parts.iter().any(|part| part.contains(term)) {
            weight::WITHIN_PART[self.kind]
        } else if score == 0 && self.whole.contains(term) {
            weight::WITHIN_NAME
        } else {
            0
        }
    }
}

/// Returns the words of a name in lower case. A word in camel case is also returned whole, because people write
/// `GitHub` as one word.
fn parts_of(name: &str) -> impl Iterator<Item = String> {
    let chunks = name.split(|c: char| !c.is_alphanumeric()).filter(|chunk| !chunk.is_empty());
    chunks.flat_map(|chunk| {
        let words = humanise(chunk).to_lowercase();
        let mut parts: Vec<_> = words.split(' ').map(str::to_owned).collect();
        if parts.len() > 1 {
            parts.push(chunk.to_lowercase());
        }
        parts
    })
}

/// Returns true if `term`, in lower case, occurs in `text` as a whole word: neither end of it splits a word.
fn has_word(text: &str, term: &str) -> bool {
    let ends_well = |text: &str, at: usize| {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let before = word(text[..at].chars().next_back()) && word(term.chars().next());
        let end = at + term.len();
        let after = word(text[end..].chars().next()) && word(term.chars().next_back());
        !before && !after
    };
    if !term.is_ascii() {
        let text = text.to_lowercase();
        return text.match_indices(term).any(|(at, _)| ends_well(&text, at));
    }
    // A byte of an ASCII term is never part of a longer character, so each match begins at a character.
    let windows = text.as_bytes().windows(term.len()).enumerate();
    let mut places = windows.filter(|(_, bytes)| bytes.eq_ignore_ascii_case(term.as_bytes()));
    places.any(|(at, _)| ends_well(text, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_parts() {
        let parts = |name| parts_of(name).collect::<Vec<_>>().join(" ");
        assert_eq!(parts("send_message"), "send message");
        assert_eq!(parts("NotebookEdit"), "notebook edit notebookedit");
        assert_eq!(parts("API-get.users"), "api get users");
        assert_eq!(parts("__"), "");
    }

    #[test]
    fn words_have_edges() {
        for (text, term, found) in [
            ("Read the thread", "read", true),
            ("already in a thread", "read", false),
            ("read_file", "read", false),
            ("re-read it", "read", true),
            ("in C++ only", "c++", true),
            ("Größe: ÄNDERN", "ändern", true),
            ("Größen", "größe", false),
            ("naïve read", "read", true),
            ("", "read", false),
            ("rea", "read", false),
        ] {
            assert_eq!(has_word(text, term), found, "{term:?} in {text:?}");
        }
    }

    /// Checks the same by its definition: finds a place where neither end splits a word.
    fn has_word_slowly(text: &str, term: &str) -> bool {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        let term: Vec<char> = term.chars().collect();
        let is_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
        (0..text.len()).any(|at| {
            let (before, here) = text.split_at(at);
            let splits = |one, other| is_word(one) && is_word(other);
            here.starts_with(&term)
                && !splits(before.last(), term.first())
                && !splits(here.get(term.len()), term.last())
        })
    }

    proptest! {
        #[test]
        fn words_are_found_as_defined(text in "[abAB_é+ .]{0,24}", term in "[abé_+]{1,3}") {
            prop_assert_eq!(has_word(&text, &term), has_word_slowly(&text, &term));
        }
    }
}
