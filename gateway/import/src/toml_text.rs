//! An entry in a TOML file, all other bytes kept.

use crate::{ENTRY, EditError};

/// The text with `line` as the content of the table `section.tg`.
pub(crate) fn set(text: &str, section: &str, line: &str) -> Result<String, EditError> {
    let cleared = remove(text, section)?;
    // `remove` takes the empty line out again.
    let gap = match cleared.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let edited = format!("{cleared}{gap}[{section}.{ENTRY}]\n{line}\n");
    parse(&edited).map_err(|_| EditError::Shape(section.to_owned()))?;
    Ok(edited)
}

/// The text without the table `section.tg`.
pub(crate) fn remove(text: &str, section: &str) -> Result<String, EditError> {
    take_out(text, section, ENTRY)
}

/// The text without the table `section.key`, those within it, and the empty line before. Comments behind it stay.
pub(crate) fn take_out(text: &str, section: &str, key: &str) -> Result<String, EditError> {
    let mut left = parse(text)?;
    let Some(servers) = left.get_mut(section).and_then(toml::Value::as_table_mut) else {
        return Ok(text.to_owned());
    };
    if servers.remove(key).is_none() {
        return Ok(text.to_owned());
    }
    let mut is_within = false;
    let mut kept = String::new();
    // Lines without content, which may belong to the next table.
    let mut behind = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            let was_within = is_within;
            is_within = is_header_of(line, section, key).unwrap_or(was_within);
            if is_within && !was_within && (kept == "\n" || kept.ends_with("\n\n")) {
                kept.pop();
            }
        }
        if !is_within {
            kept.push_str(&std::mem::take(&mut behind));
            kept.push_str(line);
        } else if line.trim().is_empty() || line.starts_with('#') {
            behind.push_str(line);
        } else {
            behind.clear();
        }
    }
    kept.push_str(&behind);
    let is_right =
        parse(&kept).is_ok_and(|kept| without_empty(kept, section) == without_empty(left, section));
    if is_right { Ok(kept) } else { Err(EditError::Shape(format!("{section}.{key}"))) }
}

/// Returns whether a header is that of the table `section.key` or of one within it; `None` if the line is no header.
fn is_header_of(line: &str, section: &str, key: &str) -> Option<bool> {
    let named = parse(line).ok()?;
    let servers = named.get(section).and_then(toml::Value::as_table);
    Some(servers.is_some_and(|servers| servers.contains_key(key)))
}

/// Returns the table without a section that has nothing in it.
fn without_empty(mut table: toml::Table, section: &str) -> toml::Table {
    let is_empty =
        table.get(section).and_then(toml::Value::as_table).is_some_and(toml::Table::is_empty);
    if is_empty {
        table.remove(section);
    }
    table
}

fn parse(text: &str) -> Result<toml::Table, EditError> {
    toml::from_str(text).map_err(|error| EditError::Unreadable(error.to_string()))
}
