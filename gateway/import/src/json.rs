//! An entry in a JSON object of a file, with comments or without; all other bytes are kept.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::plain::{blank_comments, without_comments};
use crate::{ENTRY, EditError};

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The text with `value` as the entry of the object `section`.
pub(crate) fn set(text: &str, section: &str, value: &str) -> Result<String, EditError> {
    let cleared = remove(text, section)?;
    let text = if cleared.trim().is_empty() { "{}\n" } else { cleared.as_str() };
    let plain = without_comments(text);
    let root = members(&plain)?;
    let member = format!("\"{ENTRY}\": {value}");
    let Some(raw) = root.get(section) else {
        let indent = indent(text);
        let block = format!("\"{section}\": {{\n{indent}{indent}{member}\n{indent}}}");
        let opening = plain.find('{').ok_or_else(|| EditError::Shape(section.to_owned()))?;
        let end = if root.is_empty() { "\n" } else { "," };
        return Ok(insert(text, opening + 1, &format!("\n{indent}{block}{end}")));
    };
    let servers = members(raw.get()).map_err(|_| EditError::Shape(section.to_owned()))?;
    let start = offset(&plain, raw.get());
    // On one line where the object was empty: `remove` tells by it who wrote the object.
    let inserted = if servers.is_empty() {
        member
    } else {
        let inner: String = text[start + 1..].chars().take_while(|c| c.is_whitespace()).collect();
        format!("{inner}{member},")
    };
    Ok(insert(text, start + 1, &inserted))
}

/// The text without the entry. An object that [`set`] made for it goes with it.
pub(crate) fn remove(text: &str, section: &str) -> Result<String, EditError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let plain = without_comments(text);
    let root = members(&plain)?;
    let Some(raw) = root.get(section) else { return Ok(text.to_owned()) };
    let servers = members(raw.get()).map_err(|_| EditError::Shape(section.to_owned()))?;
    let Some(entry) = servers.get(ENTRY) else { return Ok(text.to_owned()) };
    let range = |part: &str| {
        let start = offset(&plain, part);
        start..start + part.len()
    };
    let whole = range(raw.get());
    // An object with a comment is somebody's own.
    let is_ours = servers.len() == 1
        && raw.get().starts_with("{\n")
        && text[whole.clone()] == plain[whole.clone()];
    if is_ours { cut(text, section, whole) } else { cut(text, ENTRY, range(entry.get())) }
}

/// The text without the entry `key`. Its object stays.
pub(crate) fn take_out(text: &str, section: &str, key: &str) -> Result<String, EditError> {
    let plain = without_comments(text);
    let root = members(&plain)?;
    let Some(raw) = root.get(section) else { return Ok(text.to_owned()) };
    let servers = members(raw.get()).map_err(|_| EditError::Shape(section.to_owned()))?;
    let Some(entry) = servers.get(key) else { return Ok(text.to_owned()) };
    let start = offset(&plain, entry.get());
    cut(text, key, start..start + entry.get().len())
}

/// Cuts the member `key` whose value is at `value`, and the comma that belongs to it.
fn cut(text: &str, key: &str, value: Range<usize>) -> Result<String, EditError> {
    let bare = blank_comments(text);
    let key_start = bare[..value.start].rfind(&format!("\"{key}\""));
    let key_start = key_start.ok_or_else(|| EditError::Shape(key.to_owned()))?;
    let before_bare = bare[..key_start].trim_end();
    // The end of a line ends a comment.
    let before = match text[..key_start].trim_end() {
        before if before.len() == before_bare.len() => before,
        _ => text[..key_start].trim_end_matches([' ', '\t']),
    };
    let after = &text[value.end..];
    let blanks = bare[value.end..].len() - bare[value.end..].trim_start().len();
    if bare[value.end + blanks..].starts_with(',') {
        let between = &after[..blanks];
        let between = if between.trim().is_empty() { "" } else { between };
        return Ok(format!("{before}{between}{}", &after[blanks + 1..]));
    }
    if before_bare.ends_with('{') {
        return Ok(format!("{before}{}", after.strip_prefix('\n').unwrap_or(after)));
    }
    match before_bare.strip_suffix(',') {
        Some(kept) => Ok(format!("{}{}{after}", &text[..kept.len()], &before[kept.len() + 1..])),
        None => Ok(format!("{before}{after}")),
    }
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
