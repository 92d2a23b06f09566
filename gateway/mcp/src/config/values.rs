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
    let parts = value_parts(value).into_iter();
    let texts = parts.map(Part::text).collect::<Result<Vec<String>, Lack>>();
    texts.map(|texts| texts.concat()).map_err(|lack| ConfigError::server(server, &lack.problem()))
}

/// Returns a value of an entry, with a text in the place of what is missing.
pub(super) fn value(value: &str, file: EntryFile) -> String {
    lenient(parts_of_value(value, file))
}

/// Returns a word or a URL of an entry, with a text in the place of what is missing.
pub(super) fn text(text: &str, file: EntryFile) -> String {
    lenient(parts(text, file))
}

/// Returns what a value of an entry lacks.
pub(super) fn lacks_of_value(value: &str, file: EntryFile) -> Vec<Lack> {
    lacks(parts_of_value(value, file))
}

/// Returns what a word or a URL of an entry lacks.
pub(super) fn lacks_of_text(text: &str, file: EntryFile) -> Vec<Lack> {
    lacks(parts(text, file))
}

/// Returns true if a word or a URL of an entry has the text of a file in it.
pub(super) fn has_file(text: &str, file: EntryFile) -> bool {
    parts(text, file).iter().any(|part| matches!(part, Part::File(_)))
}

fn lacks(parts: Vec<Part>) -> Vec<Lack> {
    parts.into_iter().filter_map(|part| part.text().err()).collect()
}

fn lenient(parts: Vec<Part>) -> String {
    let text = |part: Part| part.text().unwrap_or_else(|_lack| UNSET.to_owned());
    parts.into_iter().map(text).collect()
}

fn parts_of_value(value: &str, file: EntryFile) -> Vec<Part> {
    match file {
        EntryFile::Gateway => value_parts(value),
        EntryFile::Host => parts(value, file),
    }
}

/// Returns the parts of a value of the gateway's own file.
fn value_parts(value: &str) -> Vec<Part> {
    if let Some(name) = value.strip_prefix("env:") {
        return vec![Part::Variable(name.to_owned(), None)];
    }
    if let Some(path) = value.strip_prefix("file:") {
        return vec![Part::File(path.to_owned())];
    }
    parts(value.strip_prefix("text:").unwrap_or(value), EntryFile::Gateway)
}

/// Returns the parts of a text with `${...}` in it. In the gateway's own file each `$$` in front of a brace is `$`: `$${A}` is
/// the text `${A}`, and `$$${A}` is `$` and a variable.
fn parts(text: &str, file: EntryFile) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let dollars = match file {
            EntryFile::Gateway => before.len() - before.trim_end_matches('$').len(),
            EntryFile::Host => 0,
        };
        parts.push(Part::Text(before[..before.len() - dollars / 2].to_owned()));
        if dollars % 2 == 1 {
            parts.push(Part::Text("{".to_owned()));
            rest = behind;
            continue;
        }
        match behind.split_once('}').and_then(|(inner, after)| Some((part(inner, file)?, after))) {
            Some((part, after)) => {
                parts.push(part);
                rest = after;
            }
            None => {
                parts.push(Part::Text("${".to_owned()));
                rest = behind;
            }
        }
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

/// Returns the part that stands between the braces of `${...}`; `None` if it is a text.
fn part(inner: &str, file: EntryFile) -> Option<Part> {
    match file {
        EntryFile::Gateway => own_part(inner),
        EntryFile::Host => Some(hosts_part(inner)),
    }
}

/// Returns what `${...}` is in the gateway's own file. What a shell alone knows, such as `${#A}`, is a text.
fn own_part(inner: &str) -> Option<Part> {
    if let Some(path) = inner.strip_prefix("file:") {
        return Some(Part::File(path.to_owned()));
    }
    let (name, default) = with_default(inner);
    let name = match name.strip_prefix("env:") {
        Some(name) => Some(name).filter(|name| !name.is_empty() && !name.contains(':')),
        None => Some(name).filter(|name| is_name(name)),
    };
    Some(Part::Variable(name?.to_owned(), default))
}

/// Returns what `${...}` is in a host's file.
fn hosts_part(inner: &str) -> Part {
    let (name, default) = with_default(inner);
    match name {
        // Editors have these names for them.
        "userHome" => Part::Variable("HOME".to_owned(), default),
        "workspaceFolder" => {
            let folder = std::env::current_dir().unwrap_or_default();
            Part::Text(folder.to_string_lossy().into_owned())
        }
        _ => Part::Variable(variable(name), default),
    }
}

/// Returns the name of a variable, and what stands for it where it is not set.
fn with_default(inner: &str) -> (&str, Option<String>) {
    match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns the variable of a host's name: `NAME` for `env:NAME`, and one that a shell can set for any other, such as
/// `input:token`.
fn variable(name: &str) -> String {
    let name = name.strip_prefix("env:").unwrap_or(name);
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

pub(super) fn some_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
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
    }

    #[test]
    fn references_of_editors_are_read_and_texts_can_be_kept_from_it() {
        let path = std::env::var("PATH").expect("a path");
        for file in [EntryFile::Gateway, EntryFile::Host] {
            assert_eq!(value("a ${env:PATH}", file), format!("a {path}"));
        }
        for (text, wanted) in [
            ("$${A} ${PATH}", format!("${{A}} {path}")),
            ("a$$${PATH}", format!("a${path}")),
            ("$$$${PATH}$", "$${PATH}$".to_owned()),
            ("text:file:./dev.db", "file:./dev.db".to_owned()),
        ] {
            assert_eq!(value(text, EntryFile::Gateway), wanted, "{text}");
        }
        assert_eq!(value("text:file:./dev.db", EntryFile::Host), "text:file:./dev.db");
        assert_eq!(value("$${PATH}", EntryFile::Host), format!("${path}"));
        let folder = std::env::current_dir().expect("a folder").display().to_string();
        assert_eq!(value("${workspaceFolder}/x", EntryFile::Host), format!("{folder}/x"));
        let lacks = |text| lacks_of_value(text, EntryFile::Gateway);
        let variable = |name: &str| Lack::Variable(name.to_owned());
        let lacked = lacks("${env:TOOLGATE_NO} ${PATH} ${env:TOOLGATE-NO}");
        assert_eq!(lacked, ["TOOLGATE_NO", "TOOLGATE-NO"].map(variable));
        let lacked = lacks_of_value("${TOOLGATE_NO} ${input:tok}", EntryFile::Host);
        assert_eq!(lacked, ["TOOLGATE_NO", "INPUT_TOK"].map(variable));
        assert!(
            matches!(&lacks("Bearer ${file:/no/such}")[..], [Lack::File(path, _)] if path == "/no/such")
        );
        assert_eq!(lacks("env:PATH").len() + lacks("${TOOLGATE_NO:-x}").len(), 0);
    }

    #[test]
    fn what_only_a_shell_knows_is_a_text_in_the_gateways_own_file() {
        for script in
            ["${X%/}", "${#A}", "${1:?m}", "${1:-x}", "${@}", "${}", "a ${", "${A ${", "${input:t}"]
        {
            assert_eq!(text(script, EntryFile::Gateway), script);
            assert!(lacks_of_text(script, EntryFile::Gateway).is_empty(), "{script}");
        }
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(text("${ ${PATH}", EntryFile::Gateway), format!("${{ {path}"));
        assert_eq!(text("${PATH} ${", EntryFile::Host), format!("{path} ${{"));
    }
}
