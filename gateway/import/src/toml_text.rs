//! An entry in a TOML file, all other bytes kept.

use crate::{ENTRY, EditError};

/// The text with `line` as the content of the table `section.tg`.
pub(crate) fn set(text: &str, section: &str, line: &str) -> Result<String, EditError> {
    let cleared = remove(text, section)?;
    let gap = if cleared.is_empty() || cleared.ends_with('\n') { "" } else { "\n" };
    let edited = format!("{cleared}{gap}[{section}.{ENTRY}]\n{line}\n");
    parse(&edited).map_err(|_| EditError::Shape(section.to_owned()))?;
    Ok(edited)
}

/// The text without the table `section.tg`.
pub(crate) fn remove(text: &str, section: &str) -> Result<String, EditError> {
    let held = |text: &str| {
        let value = parse(text)?;
        let servers = value.get(section).and_then(toml::Value::as_table);
        Ok(servers.is_some_and(|servers| servers.contains_key(ENTRY)))
    };
    if !held(text)? {
        return Ok(text.to_owned());
    }
    let header = format!("[{section}.{ENTRY}]");
    let mut within = false;
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            within = line.trim_end() == header;
        }
        if !within {
            kept.push_str(line);
        }
    }
    if held(&kept)? { Err(EditError::Shape(section.to_owned())) } else { Ok(kept) }
}

fn parse(text: &str) -> Result<toml::Table, EditError> {
    toml::from_str(text).map_err(|error| EditError::Unreadable(error.to_string()))
}
