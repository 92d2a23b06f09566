//! Tools that an intent names: by the whole name, or by its beginning. Ranking comes after these.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::intent::Intent;
use crate::shard::snapshot::Snapshot;

/// Words that are looked up, the first ones.
const WORDS_MAX: usize = 64;

/// More tools than these begin so: that names none of them.
const BEGINNING_MAX: usize = 10;

/// How a tool is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rung {
    /// By the first parts of its name.
    Beginning,
    /// By its name or id.
    Whole,
}

impl Rung {
    /// What is added to the overlap, so that a higher rung goes before a lower one and both before what was
    /// ranked: scores by rank end at 1, and an overlap is -1 at least.
    pub(super) fn above(self) -> f32 {
        match self {
            Self::Beginning => 2.0,
            Self::Whole => 4.0,
        }
    }
}

/// The allowed tools that the heaviest of these intents name, and how. What is beside them, such as the result of a call,
/// does not choose tools by naming them: its words may be anybody's. Tools of untrusted MCP servers are found by the
/// words of their names only: a third party that names a tool after what people say would come first.
pub(super) fn in_intents(
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

/// The words of a text that can only be names: joined by `_` or `-`, or in camel case.
fn in_text(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| matches!(c, '_' | '-' | '.' | '/');
    let words = text.split(move |c: char| !(c.is_alphanumeric() || joins(c)));
    words.map(|word| word.trim_matches(['.', '-', '/'])).filter(|word| is_name(word))
}

pub(super) fn is_name(word: &str) -> bool {
    let mut previous_is_lower = false;
    let mut camel_case = false;
    for c in word.chars() {
        camel_case |= previous_is_lower && c.is_uppercase();
        previous_is_lower = c.is_lowercase();
    }
    camel_case || word.contains(['_', '-', '.', '/'])
}

/// The tools of that name: to the model, as `server/name`, or to any MCP server. Where a word with slashes names
/// none, its parts may.
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

/// The tools whose names go on where `word` ends, unless they are too many to be meant.
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
