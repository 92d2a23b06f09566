//! An entry in a JSON object of a file, all other bytes kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{ENTRY, EditError};

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The text with `value` as the entry of the object `section`.
pub(crate) fn set(text: &str, section: &str, value: &str) -> Result<String, EditError> {
    let cleared = remove(text, section)?;
    let text = if cleared.trim().is_empty() { "{}\n" } else { cleared.as_str() };
    let root = members(text)?;
    let member = format!("\"{ENTRY}\": {value}");
    let Some(raw) = root.get(section) else {
        let indent = indent(text);
        let block = format!("\"{section}\": {{\n{indent}{indent}{member}\n{indent}}}");
        let opening = text.find('{').ok_or_else(|| EditError::Shape(section.to_owned()))?;
        let end = if root.is_empty() { "\n" } else { "," };
        return Ok(insert(text, opening + 1, &format!("\n{indent}{block}{end}")));
    };
    let servers = members(raw.get()).map_err(|_| EditError::Shape(section.to_owned()))?;
    let start = offset(text, raw.get());
    // On one line where the object was empty: `remove` tells by it who wrote the object.
    let inserted = if servers.is_empty() {
        member
    } else {
        let inner = raw.get()[1..].chars().take_while(|c| c.is_whitespace()).collect::<String>();
        format!("{inner}{member},")
    };
    Ok(insert(text, start + 1, &inserted))
}

/// The text without the entry. An object that [`set`] made for it goes with it.
pub(crate) fn remove(text: &str, section: &str) -> Result<String, EditError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = members(text)?;
    let Some(raw) = root.get(section) else { return Ok(text.to_owned()) };
    let servers = members(raw.get()).map_err(|_| EditError::Shape(section.to_owned()))?;
    let Some(entry) = servers.get(ENTRY) else { return Ok(text.to_owned()) };
    if servers.len() == 1 && raw.get().starts_with("{\n") {
        return cut(text, section, raw.get());
    }
    cut(text, ENTRY, entry.get())
}

/// Cuts the member `key` with this value, and the comma that belongs to it.
fn cut(text: &str, key: &str, value: &str) -> Result<String, EditError> {
    let start = offset(text, value);
    let key_start = text[..start].rfind(&format!("\"{key}\""));
    let before = text[..key_start.ok_or_else(|| EditError::Shape(key.to_owned()))?].trim_end();
    let after = &text[start + value.len()..];
    let after = match after.trim_start().strip_prefix(',') {
        Some(after) => after,
        None if before.ends_with('{') => after.trim_start(),
        None => return Ok(format!("{}{after}", before.strip_suffix(',').unwrap_or(before))),
    };
    Ok(format!("{before}{after}"))
}

fn members(text: &str) -> Result<Members<'_>, EditError> {
    serde_json::from_str(text).map_err(|error| EditError::Unreadable(error.to_string()))
}

/// Position of a part in the text it is borrowed from, in bytes.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

fn insert(text: &str, at: usize, inserted: &str) -> String {
    format!("{}{inserted}{}", &text[..at], &text[at..])
}

/// The indent of the first line that has one; two spaces where none has.
fn indent(text: &str) -> &str {
    let line = text.lines().find(|line| line.starts_with([' ', '\t']));
    line.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}
