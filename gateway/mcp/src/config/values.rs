//! Values of keys: sizes, durations, and texts that stand in variables and files.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, de};

use super::ConfigError;
use crate::units;

/// Returns a value, which stands in a variable for `env:NAME` and in a file for `file:PATH`. Others are [`expanded`].
pub(super) fn resolved(server: &str, value: &str) -> Result<String, ConfigError> {
    let missing = |problem: String| ConfigError::server(server, &problem);
    if let Some(name) = value.strip_prefix("env:") {
        return variable(server, name);
    }
    if let Some(path) = value.strip_prefix("file:") {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| missing(format!("{path} can't be read: {error}")))?;
        return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
    }
    expanded(server, value)
}

/// Returns a value with its variables, `${NAME}` and `${NAME:-default}`, as hosts write them.
pub(super) fn expanded(server: &str, value: &str) -> Result<String, ConfigError> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, behind) = behind.split_once('}').ok_or_else(|| {
            let problem = format!("{value:?} has a \"${{\" that is not closed");
            ConfigError::server(server, &problem)
        })?;
        text.push_str(before);
        match name.split_once(":-") {
            Some((name, default)) => {
                text.push_str(&std::env::var(name).unwrap_or_else(|_| default.to_owned()));
            }
            None => text.push_str(&variable(server, name)?),
        }
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

fn variable(server: &str, name: &str) -> Result<String, ConfigError> {
    let missing = |_| ConfigError::server(server, &format!("the variable {name} is not set"));
    std::env::var(name).map_err(missing)
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
}
