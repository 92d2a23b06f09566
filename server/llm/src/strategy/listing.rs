//! What the description of the search lists of the tools that it finds, and what of it changes amid a conversation.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::digest::Digest;
use super::{Offer, Turn};
use crate::SEARCH_TOOL;

/// Most tokens of the names of a change, of new ones and of those that are gone each.
const CHANGE_TOKENS: u32 = 200;

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

/// Listing that the description of the search has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// Names that were told.
    told: Told,
    /// Lines that stand for them; empty where the names are listed.
    lines: Vec<String>,
    /// Digest of what else decides about `tools`: the definitions beside the search, and how the listing was asked for.
    beside: u64,
}

impl Listed {
    /// Lists as many tools as there are tokens for.
    pub(super) fn of(turn: &Turn<'_>) -> Self {
        let Offer { deferred_names: names, listing, .. } = &turn.offer;
        let beside = beside(&turn.offer);
        if listing.lines.is_empty() {
            let names = names.iter().copied();
            return Self {
                told: Told::within(listing.tokens, names, turn.count),
                beside,
                ..Self::default()
            };
        }
        let mut left = listing.tokens;
        let fits = |line: &&String| takes(&mut left, (turn.count)(&format!("{line}\n")));
        let lines: Vec<String> = listing.lines.iter().take_while(fits).cloned().collect();
        let (shown, others) = names.split_at(lines.len().min(names.len()));
        let names = shown.iter().map(|name| (*name).to_owned()).collect();
        let told = Told { names, others: others.iter().map(|name| print(name)).collect() };
        Self { told, lines, beside }
    }

    /// Returns the description of the search.
    pub(super) fn description(&self) -> String {
        let search = SEARCH_TOOL.description;
        if self.told.names.is_empty() {
            return search.to_owned();
        }
        if self.lines.is_empty() {
            return format!("{search} It finds: {}.", self.told.text());
        }
        let lines = self.lines.join("\n");
        match self.told.others.len() {
            0 => format!("{search} It finds:\n{lines}"),
            more => format!("{search} It finds:\n{lines}\nand {more} more"),
        }
    }

    /// Returns true if both stand beside the same tools, and were asked for in the same way.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.beside == other.beside
    }

    /// Returns what changed since the listing and the changes that were told.
    pub(super) fn change<'c>(
        &self,
        earlier: impl Iterator<Item = &'c Change>,
        turn: &Turn<'_>,
    ) -> Change {
        let mut known: HashSet<u32> = self.told.prints().collect();
        let mut named: Vec<String> = self.told.names.clone();
        for change in earlier {
            let gone: HashSet<u32> = change.gone.prints().collect();
            known.retain(|print| !gone.contains(print));
            named.retain(|name| !gone.contains(&print(name)));
            known.extend(change.found.prints());
            named.extend(change.found.names.iter().cloned());
        }
        let names = turn.offer.deferred_names;
        let current: HashSet<&str> = names.iter().copied().collect();
        let found = names.iter().copied().filter(|name| !known.contains(&print(name)));
        let gone = named.iter().map(String::as_str).filter(|name| !current.contains(name));
        Change {
            found: Told::within(CHANGE_TOKENS, found, turn.count),
            gone: Told::within(CHANGE_TOKENS, gone, turn.count),
        }
    }

    /// Returns the listing as JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut json = self.told.to_json();
        json["beside"] = format!("{:016x}", self.beside).into();
        if !self.lines.is_empty() {
            json["lines"] = self.lines.clone().into();
        }
        json
    }

    /// Reads a listing; `None` if it can't be read.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let told = Told::from_json(json)?;
        let lines = texts(&json["lines"]);
        let beside = u64::from_str_radix(json["beside"].as_str()?, 16).ok()?;
        let fits = lines.is_empty() || lines.len() == told.names.len();
        fits.then_some(Self { told, lines, beside })
    }
}

/// Change of the tools that can be found, as it was told amid a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// New tools.
    found: Told,
    /// Tools of the listing, or of a change, that can't be found any more.
    gone: Told,
}

impl Change {
    /// Returns true if nothing changed.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.gone.is_empty()
    }

    /// Returns the change as it is told.
    pub(super) fn text(&self) -> String {
        let found = format!(" The search finds more tools: {}.", self.found.text());
        let gone = format!(" Gone: {}.", self.gone.text());
        let mut text = "[Toolgate]".to_owned();
        text.push_str(if self.found.is_empty() { "" } else { &found });
        text.push_str(if self.gone.is_empty() { "" } else { &gone });
        text
    }

    /// Adds a later change that is told at the same place.
    pub(super) fn add(&mut self, mut later: Self) {
        later.gone.names.retain(|name| !self.found.take(name));
        later.found.names.retain(|name| !self.gone.take(name));
        self.found.add(later.found);
        self.gone.add(later.gone);
    }

    /// Returns the change as JSON.
    pub(super) fn to_json(&self) -> Value {
        json!({ "found": self.found.to_json(), "gone": self.gone.to_json() })
    }

    /// Reads a change; an empty one if it can't be read.
    pub(super) fn from_json(json: &Value) -> Self {
        let told = |key: &str| Told::from_json(&json[key]).unwrap_or_default();
        Self { found: told("found"), gone: told("gone") }
    }
}

/// Names that were told, and those for which there was no room: of them the number was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Told {
    names: Vec<String>,
    /// Fingerprints of the names that did not fit.
    others: Vec<u32>,
}

impl Told {
    /// Tells as many names as there are tokens for.
    fn within<'n>(
        tokens: u32,
        names: impl Iterator<Item = &'n str>,
        count: &dyn Fn(&str) -> u32,
    ) -> Self {
        let mut left = tokens;
        let mut told = Self::default();
        for name in names {
            let fits = told.others.is_empty() && takes(&mut left, count(&format!("{name}, ")));
            if fits {
                told.names.push(name.to_owned());
            } else {
                told.others.push(print(name));
            }
        }
        told
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.others.is_empty()
    }

    /// Returns the names in a row, with the number of the others.
    fn text(&self) -> String {
        match (self.names.is_empty(), self.others.len()) {
            (true, more) => more.to_string(),
            (false, 0) => self.names.join(", "),
            (false, more) => format!("{}, and {more} more", self.names.join(", ")),
        }
    }

    fn prints(&self) -> impl Iterator<Item = u32> {
        self.names.iter().map(|name| print(name)).chain(self.others.iter().copied())
    }

    /// Takes a name out. Returns false if it is not there.
    fn take(&mut self, name: &str) -> bool {
        let place = self.names.iter().position(|known| known == name);
        place.map(|place| self.names.remove(place)).is_some()
    }

    fn add(&mut self, later: Self) {
        self.names.extend(later.names);
        self.others.extend(later.others);
    }

    fn to_json(&self) -> Value {
        let others: String = self.others.iter().map(|print| format!("{print:06x}")).collect();
        json!({ "names": self.names, "others": others })
    }

    fn from_json(json: &Value) -> Option<Self> {
        let written = json["others"].as_str()?.as_bytes();
        let print = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let others = written.chunks(6).map(print).collect::<Option<_>>()?;
        Some(Self { names: texts(&json["names"]), others })
    }
}

/// Returns the digest of what decides about `tools` beside the tools that can be found.
fn beside(offer: &Offer<'_>) -> u64 {
    let mut digest = Digest::new();
    offer.own.iter().for_each(|tool| digest.add(tool));
    for tool in offer.always_on {
        digest.add(&json!([tool.name, tool.description, tool.input_schema_json]));
    }
    digest.add(&json!([offer.listing.tokens, offer.listing.lines.is_empty()]));
    digest.value()
}

/// Takes tokens out of those that are left. Returns false if there are not so many.
fn takes(left: &mut u32, tokens: u32) -> bool {
    let rest = left.checked_sub(tokens);
    rest.inspect(|rest| *left = *rest).is_some()
}

/// Returns the fingerprint of a name: 24 bits, so that thousands fit into a ledger. A new tool whose fingerprint is that
/// of another is found all the same; only that it is new is not told.
fn print(name: &str) -> u32 {
    let digest = super::digest::of(&json!(name));
    u32::try_from((digest ^ (digest >> 24) ^ (digest >> 48)) & 0xff_ffff).unwrap_or_default()
}

fn texts(json: &Value) -> Vec<String> {
    let texts = json.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
