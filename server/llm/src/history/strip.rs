//! Removes references from a history that the next request can't resolve.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::reading::{changed_tool, field, items, name, text};
use super::snapshot::is_snapshot;

const NOTHING_LEFT: &str = "The tools that were found here are no longer available.";
/// Text where the request defines some of the tools, but must not refer to them.
const DEFINED: &str = "See the list of tools for those that were found here.";
const SEARCH_TOOLS: [&str; 2] = ["tool_search_tool_regex", "tool_search_tool_bm25"];

/// Reason for a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request does not define the tool.
    Vanished,
    /// The model, or a proxy before it, does not accept references.
    Unsupported,
}

/// A removed item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Index of its entry in the original history.
    pub message: usize,
    /// Type of the item, such as `tool_reference`.
    pub kind: String,
    /// Name of the tool that it refers to; for a search, the name of the search tool. Empty if it names none.
    pub name: String,
    /// Reason for the removal.
    pub reason: Reason,
}

/// A history that can be sent to the provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Stripped {
    /// The messages that can be sent.
    pub messages: Vec<Value>,
    /// The removed items, in the order of the history. Snapshots are not listed.
    pub removed: Vec<Removed>,
}

/// Removes references to tools that the next request can't resolve from a history.
///
/// Tool calls and their results stay in pairs. A result or message that would be left empty gets a text: that its tools
/// are gone, or that they are in the list of tools. This covers Anthropic's `tool_reference` blocks, server-side tool
/// searches, and tools that a system message adds or removes, and OpenAI's `tool_search_call`, `tool_search_output` and
/// `additional_tools` items. Snapshots are removed, and so are system messages that would be left empty.
///
/// `available` names all tools that the request will define, including deferred ones. `references` is true if the
/// model, and any proxy before it, accepts references and searches.
#[must_use]
pub fn strip<T: AsRef<str>>(
    messages: &[Value],
    available: impl IntoIterator<Item = T>,
    references: bool,
) -> Stripped {
    let names: Vec<T> = available.into_iter().collect();
    let available = names.iter().map(AsRef::as_ref).collect();
    let mut stripper = Stripper { removed: Vec::new(), available, references, message: 0 };
    let mut kept = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        stripper.message = index;
        if !is_snapshot(message)
            && let Some(left) = stripper.entry(message)
        {
            kept.push((index, left));
        }
    }
    let messages = stripper.without_lone_reasoning(kept);
    stripper.removed.sort_by_key(|removed| removed.message);
    Stripped { messages, removed: stripper.removed }
}

struct Stripper<'a> {
    removed: Vec<Removed>,
    available: HashSet<&'a str>,
    references: bool,
    message: usize,
}

impl Stripper<'_> {
    /// Returns the rest of an entry, or `None` if nothing is left.
    fn entry(&mut self, entry: &Value) -> Option<Value> {
        match text(field(entry, "type")) {
            "tool_search_call" if !self.references => self.unsupported("tool_search_call", ""),
            "tool_search_output" => self.loaded_tools("tool_search_output", entry),
            "additional_tools" => {
                let before = self.removed.len();
                let left = self.loaded_tools("additional_tools", entry)?;
                let emptied =
                    before < self.removed.len() && items(field(&left, "tools")).is_empty();
                (!emptied).then_some(left)
            }
            _ if text(field(entry, "role")) == "system" => self.with_changes(entry),
            _ => Some(self.with_content(entry)),
        }
    }

    /// Returns the rest of a system message, or `None` if it held only changes of tools and none is left.
    fn with_changes(&mut self, entry: &Value) -> Option<Value> {
        let before = self.removed.len();
        let kept = self.keep(items(field(entry, "content")), Self::change);
        let emptied = before < self.removed.len() && kept.is_empty();
        (!emptied).then(|| self.changed_since(before, entry, "content", kept))
    }

    fn change(&mut self, block: &Value) -> Option<Value> {
        let kind = text(field(block, "type"));
        let Some(changed) = changed_tool(block) else { return self.block(block) };
        if !self.references {
            return self.unsupported(kind, name(changed.name));
        }
        // A removal stays, because the addition that it undoes may hold the tool's definition.
        let stays =
            kind != "tool_addition" || !changed.is_reference || self.has(kind, changed.name);
        stays.then(|| block.clone())
    }

    /// Removes reasoning items whose following item was removed, because OpenAI refuses them.
    fn without_lone_reasoning(&mut self, kept: Vec<(usize, Value)>) -> Vec<Value> {
        let left: HashSet<usize> = kept.iter().map(|(index, _)| *index).collect();
        let removed = self.removed.iter().map(|removed| removed.message);
        let gone: HashSet<usize> = removed.filter(|index| !left.contains(index)).collect();
        let lone: Vec<bool> = (0..kept.len())
            .map(|place| {
                let (index, entry) = &kept[place];
                let follower = kept.get(place + 1).map(|(_, entry)| entry);
                gone.contains(&(index + 1))
                    && text(field(entry, "type")) == "reasoning"
                    && !follower.is_some_and(is_led_to)
            })
            .collect();
        let mut messages = Vec::with_capacity(kept.len());
        for ((index, entry), is_lone) in kept.into_iter().zip(lone) {
            if is_lone {
                self.message = index;
                self.unsupported("reasoning", "");
            } else {
                messages.push(entry);
            }
        }
        messages
    }

    fn loaded_tools(&mut self, kind: &str, entry: &Value) -> Option<Value> {
        if !self.references {
            return self.unsupported(kind, "");
        }
        let before = self.removed.len();
        let tools = self.keep(items(field(entry, "tools")), Self::loaded_tool);
        Some(self.changed_since(before, entry, "tools", tools))
    }

    fn loaded_tool(&mut self, tool: &Value) -> Option<Value> {
        match text(field(tool, "type")) {
            "namespace" => {
                let inner = self.keep(items(field(tool, "tools")), Self::loaded_tool);
                (!inner.is_empty()).then(|| with(tool, "tools", Value::Array(inner)))
            }
            "function" | "custom" => self.has("tool", field(tool, "name")).then(|| tool.clone()),
            _ => Some(tool.clone()),
        }
    }

    /// Returns the text of a result or message of which nothing is left. `before` is the number of removals before it.
    fn nothing_left(&self, before: usize) -> Value {
        let is_defined = |removed: &Removed| self.available.contains(removed.name.as_str());
        let said =
            if self.removed[before..].iter().any(is_defined) { DEFINED } else { NOTHING_LEFT };
        json!({ "type": "text", "text": said })
    }

    fn with_content(&mut self, entry: &Value) -> Value {
        let before = self.removed.len();
        let mut kept = self.keep(items(field(entry, "content")), Self::block);
        if kept.is_empty() {
            kept.push(self.nothing_left(before));
        }
        self.changed_since(before, entry, "content", kept)
    }

    fn block(&mut self, block: &Value) -> Option<Value> {
        let called = field(block, "name");
        match text(field(block, "type")) {
            "tool_result" | "mcp_tool_result" => {
                let before = self.removed.len();
                let mut kept = self.keep(items(field(block, "content")), Self::reference);
                if kept.is_empty() {
                    kept.push(self.nothing_left(before));
                }
                Some(self.changed_since(before, block, "content", kept))
            }
            "tool_search_tool_result" => self.search_result(block),
            "server_tool_use" if !self.references && SEARCH_TOOLS.contains(&text(called)) => {
                self.unsupported("server_tool_use", text(called))
            }
            "tool_use" if !self.references && block.get("caller").is_some() => {
                let _: Option<Value> = self.unsupported("caller", name(called));
                let mut left = block.clone();
                left.as_object_mut().map(|fields| fields.shift_remove("caller"));
                Some(left)
            }
            _ => Some(block.clone()),
        }
    }

    fn search_result(&mut self, block: &Value) -> Option<Value> {
        if !self.references {
            return self.unsupported("tool_search_tool_result", "");
        }
        let found = field(block, "content");
        let before = self.removed.len();
        let kept = self.keep(items(field(found, "tool_references")), Self::reference);
        let left = self.changed_since(before, found, "tool_references", kept);
        Some(if before == self.removed.len() {
            block.clone()
        } else {
            with(block, "content", left)
        })
    }

    fn reference(&mut self, item: &Value) -> Option<Value> {
        let stays = text(field(item, "type")) != "tool_reference"
            || self.has("tool_reference", field(item, "tool_name"));
        stays.then(|| item.clone())
    }

    /// Returns true if a reference may stay, and notes the removal otherwise.
    fn has(&mut self, kind: &str, tool: &Value) -> bool {
        let called = name(tool);
        let stays = self.references && self.available.contains(called);
        if !stays {
            let reason = if self.references { Reason::Vanished } else { Reason::Unsupported };
            self.note(kind, called, reason);
        }
        stays
    }

    fn unsupported(&mut self, kind: &str, called: &str) -> Option<Value> {
        self.note(kind, called, Reason::Unsupported);
        None
    }

    fn note(&mut self, kind: &str, called: &str, reason: Reason) {
        let kind = kind.to_owned();
        let name = called.to_owned();
        self.removed.push(Removed { message: self.message, kind, name, reason });
    }

    fn keep(
        &mut self,
        values: &[Value],
        change: fn(&mut Self, &Value) -> Option<Value>,
    ) -> Vec<Value> {
        values.iter().filter_map(|value| change(self, value)).collect()
    }

    /// Returns the object with another list if anything was removed since `before`.
    fn changed_since(&self, before: usize, object: &Value, key: &str, list: Vec<Value>) -> Value {
        if before == self.removed.len() {
            return object.clone();
        }
        with(object, key, Value::Array(list))
    }
}

fn with(object: &Value, key: &str, value: Value) -> Value {
    let mut changed = object.clone();
    if let Value::Object(fields) = &mut changed {
        fields.insert(key.to_owned(), value);
    }
    changed
}

/// Returns true if an item of the Responses API can follow a reasoning item.
fn is_led_to(entry: &Value) -> bool {
    text(field(entry, "type")).ends_with("_call") || text(field(entry, "role")) == "assistant"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(kind: &str, tool: &str) -> Value {
        json!({ "type": kind, "tool": { "type": "tool_reference", "name": tool } })
    }

    fn definition(tool: &str) -> Value {
        let definition = json!({ "name": tool, "input_schema": { "type": "object" } });
        json!({ "type": "tool_addition", "tool": { "type": "tool_definition", "definition": definition } })
    }

    fn system(content: &[&Value]) -> Value {
        json!({ "role": "system", "content": content })
    }

    fn noted(stripped: &Stripped) -> Vec<String> {
        let note = |removed: &Removed| {
            format!("{} {} {} {:?}", removed.message, removed.kind, removed.name, removed.reason)
        };
        stripped.removed.iter().map(note).collect()
    }

    #[test]
    fn without_references_no_change_of_tools_is_left() {
        let said = json!({ "type": "text", "text": "Be brief." });
        let changes =
            [definition("a"), reference("tool_addition", "b"), reference("tool_removal", "b")];
        let user = json!({ "role": "user", "content": "Go." });
        let history = [
            user.clone(),
            system(&[&changes[0], &said, &changes[1]]),
            user.clone(),
            system(&[&changes[2]]),
        ];
        let stripped = strip(&history, ["a", "b"], false);
        assert_eq!(stripped.messages, [user.clone(), system(&[&said]), user]);
        let expected = [
            "1 tool_addition a Unsupported",
            "1 tool_addition b Unsupported",
            "3 tool_removal b Unsupported",
        ];
        assert_eq!(noted(&stripped), expected);
    }

    #[test]
    fn with_references_only_those_to_tools_that_are_gone_go() {
        let kept = [
            definition("gone"),
            reference("tool_addition", "here"),
            reference("tool_removal", "gone"),
        ];
        let gone = reference("tool_addition", "gone");
        let history = [system(&[&kept[0], &gone, &kept[1]]), system(&[&kept[2]]), system(&[&gone])];
        let stripped = strip(&history, ["here"], true);
        assert_eq!(stripped.messages, [system(&[&kept[0], &kept[1]]), system(&[&kept[2]])]);
        let expected = ["0 tool_addition gone Vanished", "2 tool_addition gone Vanished"];
        assert_eq!(noted(&stripped), expected);
    }

    #[test]
    fn other_messages_are_as_they_came() {
        let addition = definition("a");
        for message in [
            json!({ "role": "user", "content": [addition] }),
            json!({ "role": "system", "content": [] }),
            json!({ "role": "system", "content": "Be brief." }),
            json!({ "role": "system", "content": [7, { "type": "tool_additions" }] }),
        ] {
            let stripped = strip(std::slice::from_ref(&message), ["a"], false);
            assert_eq!(stripped.messages, [message]);
            assert_eq!(stripped.removed, []);
        }
    }
}
