//! Tools that an intent names, by the whole name or by its beginning. They rank before all other tools.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use crate::router::intent::Intent;
use crate::shard::snapshot::Snapshot;

/// Number of words that are looked up, counted from the first.
const WORDS_MAX: usize = 64;

/// Maximum number of tools that a beginning may match. A beginning of more tools names none of them.
const BEGINNING_MAX: usize = 10;

/// Match of a tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::router) enum Rung {
    /// Match by the first parts of the name.
    Beginning,
    /// Match by the whole name or id.
    Whole,
}

impl Rung {
    /// Returns the amount that is added to the overlap. It puts a higher rung before a lower one, and both before
    /// ranked tools: scores by rank end at 1, and an overlap is at least -1.
    pub(in crate::router) fn above(self) -> f32 {
        match self {
            Self::Beginning => 2.0,
            Self::Whole => 4.0,
        }
    }
}

/// Returns the allowed tools that the heaviest of these intents name, with the match. Context beside them, such as the
/// result of a call, does not choose tools by naming them, because anybody may have written its words. Tools of
/// untrusted MCP servers are found only by the words of their names. Otherwise a third party that names a tool after
/// common words would come first.
pub(in crate::router) fn in_intents(
    intents: &[Intent],
    snapshot: &Snapshot,
    allowed: Option<&FixedBitSet>,
) -> BTreeMap<u32, Rung> {
    let is_allowed = |slot: &u32| {
        allowed.is_none_or(|set| set.contains(*slot as usize)) && !snapshot.tool(*slot).untrusted
    };
    let mut named: BTreeMap<u32, Rung> = BTreeMap::new();
    let heaviest = intents.iter().map(|intent| intent.weight).fold(0.0, f32::max);
    let asking = intents.iter().filter(|intent| intent.weight >= heaviest);
    let words = asking.flat_map(|intent| in_text(&intent.text));
    for word in words.take(WORDS_MAX) {
        let whole: Vec<u32> = whole(snapshot, word).into_iter().filter(is_allowed).collect();
        let (rung, slots) = if whole.is_empty() {
            (Rung::Beginning, beginning(snapshot, word, is_allowed))
        } else {
            (Rung::Whole, whole)
        };
        for slot in slots {
            named.entry(slot).and_modify(|known| *known = rung.max(*known)).or_insert(rung);
        }
    }
    named
}

/// Returns the words of a text that can only be names: joined by `_`, `-`, `.` or `/`, or in camel case.
fn in_text(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| matches!(c, '_' | '-' | '.' | '/');
    let words = text.split(move |c: char| !(c.is_alphanumeric() || joins(c)));
    words.map(|word| word.trim_matches(['.', '-', '/'])).filter(|word| is_name(word))
}

pub(in crate::router) fn is_name(word: &str) -> bool {
    let mut previous_is_lower = false;
    let mut camel_case = false;
    for c in word.chars() {
        camel_case |= previous_is_lower && c.is_uppercase();
        previous_is_lower = c.is_lowercase();
    }
    camel_case || word.contains(['_', '-', '.', '/'])
}

/// Returns the tools of that name: the model-facing name, `server/name`, or the MCP name on any server. If a word with
/// slashes names none, its parts are looked up as MCP names.
fn whole(snapshot: &Snapshot, word: &str) -> Vec<u32> {
    let names = &snapshot.names;
    match names.requested(word, &snapshot.tools) {
        Some(slot) => vec![slot],
        None if word.contains('/') => {
            word.split('/').flat_map(|part| names.mcp_name(part)).copied().collect()
        }
        None => names.mcp_name(word).to_vec(),
    }
}

/// Returns the tools whose names go on after `word` with a separator. Returns none if they are too many to be meant.
fn beginning(snapshot: &Snapshot, word: &str, is_allowed: impl Fn(&u32) -> bool) -> Vec<u32> {
    let goes_on = |slot: &u32| {
        let rest = snapshot.tool(*slot).id.name.as_str().strip_prefix(word);
        rest.is_some_and(|rest| rest.starts_with(['_', '-', '.']))
    };
    let slots = snapshot.names.beginning_with(word, &snapshot.tools);
    let slots = slots.filter(goes_on).filter(is_allowed).take(BEGINNING_MAX + 1);
    let slots: Vec<u32> = slots.collect();
    if slots.len() > BEGINNING_MAX { Vec::new() } else { slots }
}

#[cfg(test)]
mod tests;
