//! Values of keys: sizes, durations, and texts that stand in variables and files.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, de};

use super::{ConfigError, EntryFile};
use crate::units;

/// Text in the place of what is missing, for checks of the rest. No server is started with it.
const UNSET: &str = "unset";

/// Part of a value.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A variable, and what stands for it where it is not set.
    Variable(String, Option<String>),
    /// Path of a file whose text it is.
    File(String),
}

/// Thing outside of the file that a value needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lack {
    /// A variable that is not set.
    Variable(String),
    /// A file that can't be read: its path, and the error.
    File(String, String),
}

/// Returns a value, which stands in a variable for `env:NAME` and in a file for `file:PATH`, and may have `${NAME}` and
/// `${NAME:-default}` within.
pub(super) fn resolved(server: &str, value: &str) -> Result<String, ConfigError> {
    let problem = |problem: String| ConfigError::server(server, &problem);
    let parts = value_parts(value).map_err(problem)?;
    let texts = parts.into_iter().map(Part::text).collect::<Result<Vec<String>, Lack>>();
    texts.map(|texts| texts.concat()).map_err(|lack| problem(lack.problem()))
}

/// Returns a value of an entry, with a text in the place of what is missing.
pub(super) fn value(server: &str, value: &str, file: EntryFile) -> Result<String, ConfigError> {
    lenient(server, parts_of_value(value, file))
}

/// Returns a word or a URL of an entry, with a text in the place of what is missing.
pub(super) fn text(server: &str, text: &str, file: EntryFile) -> Result<String, ConfigError> {
    lenient(server, parts(text, file))
}

/// Returns what a value of an entry lacks. One that makes no sense lacks nothing.
pub(super) fn lacks_of_value(value: &str, file: EntryFile) -> Vec<Lack> {
    lacks(parts_of_value(value, file))
}

/// Returns what a word or a URL of an entry lacks. One that makes no sense lacks nothing.
pub(super) fn lacks_of_text(text: &str, file: EntryFile) -> Vec<Lack> {
    lacks(parts(text, file))
}

fn lacks(parts: Result<Vec<Part>, String>) -> Vec<Lack> {
    parts.unwrap_or_default().into_iter().filter_map(|part| part.text().err()).collect()
}

fn lenient(server: &str, parts: Result<Vec<Part>, String>) -> Result<String, ConfigError> {
    let parts = parts.map_err(|problem| ConfigError::server(server, &problem))?;
    let text = |part: Part| part.text().unwrap_or_else(|_lack| UNSET.to_owned());
    Ok(parts.into_iter().map(text).collect())
}

fn parts_of_value(value: &str, file: EntryFile) -> Result<Vec<Part>, String> {
    match file {
        EntryFile::Gateway => value_parts(value),
        EntryFile::Host => parts(value, file),
    }
}

/// Returns the parts of a value of the gateway's own file.
fn value_parts(value: &str) -> Result<Vec<Part>, String> {
    if let Some(name) = value.strip_prefix("env:") {
        return Ok(vec![Part::Variable(name.to_owned(), None)]);
    }
    if let Some(path) = value.strip_prefix("file:") {
        return Ok(vec![Part::File(path.to_owned())]);
    }
    parts(value.strip_prefix("text:").unwrap_or(value), EntryFile::Gateway)
}

/// Returns the parts of a text with `${...}` in it. The gateway's own file has `$${` for `${`.
fn parts(text: &str, file: EntryFile) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        if let (Some(before), EntryFile::Gateway) = (before.strip_suffix('$'), file) {
            parts.push(Part::Text(format!("{before}${{")));
            rest = behind;
            continue;
        }
        let (inner, behind) = behind
            .split_once('}')
            .ok_or_else(|| format!("{text:?} has a \"${{\" that is not closed"))?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(part(inner, file));
        rest = behind;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

/// Returns the part that stands between the braces of `${...}`.
fn part(inner: &str, file: EntryFile) -> Part {
    if let (Some(path), EntryFile::Gateway) = (inner.strip_prefix("file:"), file) {
        return Part::File(path.to_owned());
    }
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    match (name, file) {
        // Editors have these names for them.
        ("userHome", EntryFile::Host) => Part::Variable("HOME".to_owned(), default),
        ("workspaceFolder", EntryFile::Host) => {
            let folder = std::env::current_dir().unwrap_or_default();
            Part::Text(folder.to_string_lossy().into_owned())
        }
        _ => Part::Variable(variable(name), default),
    }
}

/// Returns the variable of a name: `NAME` for `env:NAME`, and one that a shell can set for any other, such as `input:token`.
fn variable(name: &str) -> String {
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name(name) {
        return name.to_owned();
    }
    let upper = name.to_ascii_uppercase();
    upper.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

impl Part {
    fn text(self) -> Result<String, Lack> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Variable(name, default) => {
                std::env::var(&name).ok().or(default).ok_or(Lack::Variable(name))
            }
            Self::File(path) => match std::fs::read_to_string(&path) {
                Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => Err(Lack::File(path, error.to_string())),
            },
        }
    }
}

impl Lack {
    /// Returns the problem, as a clause.
    pub(super) fn problem(&self) -> String {
        match self {
            Self::Variable(name) => format!("the variable {name} is not set"),
            Self::File(path, error) => format!("{path} can't be read: {error}"),
        }
    }
}
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::size(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no size, such as \"32KiB\"")))
}

pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::duration(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no duration, such as \"60s\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_within_values_are_read() {
        let value = |text: &str| resolved("s", text).map_err(|error| error.to_string());
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(value("a ${PATH} b"), Ok(format!("a {path} b")));
        assert_eq!(value("${TOOLGATE_NOT_SET:-x}${TOOLGATE_NOT_SET:-}"), Ok("x".to_owned()));
        assert_eq!(value("$HOME {}"), Ok("$HOME {}".to_owned()));
        assert!(value("${TOOLGATE_NOT_SET}").expect_err("nothing").contains("not set"));
        assert!(value("${A").expect_err("open").contains("not closed"));
    }

    #[test]
    fn references_of_editors_are_read_and_texts_can_be_kept_from_it() {
        let read = |text: &str, file| value("s", text, file).expect(text);
        let path = std::env::var("PATH").expect("a path");
        for file in [EntryFile::Gateway, EntryFile::Host] {
            assert_eq!(read("a ${env:PATH}", file), format!("a {path}"));
        }
        assert_eq!(read("$${A} ${PATH}", EntryFile::Gateway), format!("${{A}} {path}"));
        assert_eq!(read("text:file:./dev.db", EntryFile::Gateway), "file:./dev.db");
        assert_eq!(read("text:file:./dev.db", EntryFile::Host), "text:file:./dev.db");
        let folder = std::env::current_dir().expect("a folder").display().to_string();
        assert_eq!(read("${workspaceFolder}/x", EntryFile::Host), format!("{folder}/x"));
        let lacks = |text| lacks_of_value(text, EntryFile::Gateway);
        let variable = |name: &str| Lack::Variable(name.to_owned());
        assert_eq!(
            lacks("${env:TOOLGATE_NO} ${PATH} ${input:tok}"),
            ["TOOLGATE_NO", "INPUT_TOK"].map(variable)
        );
        assert!(
            matches!(&lacks("Bearer ${file:/no/such}")[..], [Lack::File(path, _)] if path == "/no/such")
        );
        assert_eq!(lacks("env:PATH").len() + lacks("${TOOLGATE_NO:-x}").len(), 0);
    }
}
