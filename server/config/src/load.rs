//! The configuration of this process: the choice of the file to read, and the environment. No other part of the
//! configuration looks at either.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::mistake::{ConfigErrors, Mistake, Source};
use super::settings::{FlagValue, Inputs, SourceFile, user_directory};
use super::{Config, Parsed};

/// Environment variable that names the configuration file.
pub const CONFIG_FILE_ENV: &str = "TOOLGATE_CONFIG";

/// Parses `file`, this process's environment and `flags`. If `file` is `None`, the user's file is read if there is one.
///
/// # Errors
/// Returns every mistake, including an unreadable file.
pub fn load(file: Option<&Path>, flags: Vec<FlagValue>) -> Result<Parsed, ConfigErrors> {
    let (environment, mut mistakes) = environment();
    let chosen = file
        .map(Path::to_path_buf)
        .or_else(|| default_file(&environment).filter(|path| path.exists()));
    let file = chosen.and_then(|path| match fs::read_to_string(&path) {
        Ok(text) => Some(SourceFile { path, text }),
        Err(error) => {
            mistakes.push(unreadable(path, &error));
            None
        }
    });
    let parsed = Config::parse(&Inputs { file, environment, flags });
    match parsed {
        Ok(parsed) if mistakes.is_empty() => Ok(parsed),
        Ok(_) => Err(ConfigErrors(mistakes)),
        Err(ConfigErrors(others)) => {
            mistakes.extend(others);
            Err(ConfigErrors(mistakes))
        }
    }
}

/// Returns the path of the file that is read when none is named: `toolgate/toolgate.toml` in the user's configuration
/// directory.
#[must_use]
pub fn default_file(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let directory = user_directory(environment, "XDG_CONFIG_HOME", ".config")?;
    Some(directory.join("toolgate/toolgate.toml"))
}

fn unreadable(path: PathBuf, error: &std::io::Error) -> Mistake {
    Mistake {
        source: Source::File { path, line: 0 },
        key: None,
        problem: format!(
            "the configuration file cannot be read ({error}); `toolgate config example` prints one"
        ),
    }
}

/// Returns the environment as text, and a mistake for each `TOOLGATE_` variable that is not UTF-8.
fn environment() -> (BTreeMap<String, String>, Vec<Mistake>) {
    let mut environment = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else {
            continue;
        };
        match value.into_string() {
            Ok(value) => {
                environment.insert(name, value);
            }
            Err(_) if name.starts_with("TOOLGATE_") => mistakes.push(Mistake {
                source: Source::Environment(name),
                key: None,
                problem: "not UTF-8".into(),
            }),
            Err(_) => {}
        }
    }
    (environment, mistakes)
}
