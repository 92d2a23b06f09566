//! Message for a search that found nothing: the tools that were filtered out, and what to try instead.

use crate::gate::names;
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibilities;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;

/// Maximum number of locked tools that a message names.
pub(super) const LOCKED_MAX: usize = 5;

/// Maximum number of unknown names that a message repeats.
const UNKNOWN_MAX: usize = 10;
/// Maximum number of unknown names for which a similar name is suggested.
const SUGGESTED_MAX: usize = 3;

/// Maximum length of a repeated unknown name, in characters.
const NAME_MAX: usize = 128;

/// Name that no tool has.
#[derive(Debug)]
pub(super) struct UnknownName {
    /// Name as the query wrote it, cut to the length that is repeated.
    name: String,
    /// Slot of the tool that has the most similar name; `None` if none is near.
    nearest: Option<u32>,
}

/// Reasons why a search found nothing.
#[derive(Debug, Default)]
pub(super) struct Nothing {
    /// Tools that would have been found if their preconditions held.
    pub(super) locked: Vec<u32>,
    /// Number of tools that match a term but lack a required one.
    pub(super) lacking_required: u32,
    /// Required terms.
    pub(super) required: Vec<String>,
    /// Unknown names.
    pub(super) unknown: Vec<UnknownName>,
}

impl Nothing {
    /// Adds an unknown name, with a suggestion for the first few.
    pub(super) fn add_unknown(
        &mut self,
        snapshot: &Snapshot,
        name: &str,
        visible: impl Fn(u32) -> bool,
    ) {
        let looks = self.unknown.len() < SUGGESTED_MAX;
        let nearest = looks.then(|| names::suggest(snapshot, name, visible)).flatten();
        if self.unknown.len() < UNKNOWN_MAX {
            let name = name.chars().take(NAME_MAX).collect();
            self.unknown.push(UnknownName { name, nearest });
        }
    }

    /// Returns the locked tools as refusals.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let code = RefusalCode::PreconditionUnmet;
        let left_out = |slot: &u32| LeftOut {
            limit: None,
            slot: Some(*slot),
            asked_for: String::new(),
            code,
            overlap: 0.0,
            shortfall: None,
        };
        self.locked.iter().take(LOCKED_MAX).map(left_out).collect()
    }

    /// Returns the message, or an empty one if every name was found.
    pub(super) fn message_if_any(
        &self,
        snapshot: &Snapshot,
        visibilities: &Visibilities,
    ) -> String {
        let all_had = self.unknown.is_empty() && self.locked.is_empty();
        if all_had { String::new() } else { self.message(snapshot, visibilities) }
    }

    /// Returns the message for the model: what was filtered out, and what to try.
    pub(super) fn message(&self, snapshot: &Snapshot, visibilities: &Visibilities) -> String {
        let mut parts: Vec<String> = self.unknown.iter().map(|one| one.message(snapshot)).collect();
        if !self.required.is_empty() {
            parts.push(self.lacking());
        }
        parts.extend(
            Some(self.locked_message(snapshot, visibilities)).filter(|text| !text.is_empty()),
        );
        if parts.is_empty() {
            parts.push("No tool fits: try other words, or an MCP server's name.".to_owned());
        }
        parts.join(" ")
    }

    /// Returns a message that names the tools held back by a precondition, grouped by what they need; empty if there
    /// are none.
    pub(super) fn locked_message(
        &self,
        snapshot: &Snapshot,
        visibilities: &Visibilities,
    ) -> String {
        // Tools of one group have the same preconditions.
        let mut groups: Vec<(u32, Vec<&str>)> = Vec::new();
        for tool in self.locked.iter().map(|slot| snapshot.tool(*slot)) {
            match groups.iter().position(|(group, _)| *group == tool.group) {
                Some(place) => groups[place].1.push(&tool.model_name),
                None if groups.len() < LOCKED_MAX => {
                    groups.push((tool.group, vec![&tool.model_name]));
                }
                None => {}
            }
        }
        let sentence = |(group, names): &(u32, Vec<&str>)| {
            let (named, more) = names.split_at(names.len().min(LOCKED_MAX));
            let rest = format!(" and {} more", more.len());
            let named = named.join(", ") + if more.is_empty() { "" } else { &rest };
            let needs = visibilities.unlock_of(&snapshot.requirements, *group).join(" and ");
            let who = if names.len() == 1 { "it needs" } else { "they need" };
            format!("{named} may not be used yet: {who} {needs}.")
        };
        groups.iter().map(sentence).collect::<Vec<_>>().join(" ")
    }

    fn lacking(&self) -> String {
        let required: Vec<_> = self.required.iter().map(|term| format!("+{term}")).collect();
        let required = required.join(" ");
        match self.lacking_required {
            0 => format!("No tool matches {required} or any other term."),
            some => format!(
                "No tool matches every one of {required}; {some} match a term: leave out a + to see them."
            ),
        }
    }
}

impl UnknownName {
    fn message(&self, snapshot: &Snapshot) -> String {
        let tool = self.nearest.map(|slot| snapshot.tool(slot));
        let hint = tool.map(|tool| format!(" Did you mean {}?", tool.model_name));
        format!("There is no tool {:?}.{}", self.name, hint.unwrap_or_default())
    }
}
