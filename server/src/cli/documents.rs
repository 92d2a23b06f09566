//! Files that the command line reads. Users write agent states and registration settings as JSON, TOML or YAML. Tools
//! come as MCP servers list them.

mod catalogs;
mod files;
mod precondition;
mod settings;
mod state;
mod tools_list;

use std::path::Path;
use std::{fs, io};

use serde::de::DeserializeOwned;

use super::failure::Failure;

pub(super) use catalogs::{read_catalogs, tools_of};
pub(super) use files::find;
pub(super) use settings::{RegistrationSettings, Trust};
pub(super) use state::AgentStateFile;
pub(super) use tools_list::{STANDARD_INPUT, ToolsListFile};

/// Reads a document as TOML or YAML if its extension says so, and as JSON otherwise.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = read_text(path)?;
    let parsed = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => {
            toml::from_str(&text).map_err(|error| error.to_string().trim_end().to_owned())
        }
        Some("yaml" | "yml") => {
            serde_saphyr::from_str(&text).map_err(|error| error.without_snippet().to_string())
        }
        _ => serde_json::from_str(&text).map_err(|error| error.to_string()),
    };
    parsed.map_err(|problem| Failure::new(format!("{}: {problem}", path.display())))
}

/// Reads a text. An error names the file, and the position at which it is not UTF-8.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    as_text(path, fs::read(path).map_err(|error| unreadable(path, &error))?)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: cannot be read: {error}", path.display()))
}

fn as_text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{}: not UTF-8 at byte {at}: save it as UTF-8", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_the_file_and_the_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, content).expect("written");
            path
        };
        for (path, part) in [
            (file("a.json", b"{\n  \"scopes\": 3}"), "line 2"),
            (file("b.json", b"{\"scope\": []}"), "unknown field `scope`"),
            (file("c.toml", b"scopes = [\"a\"]\nmilestone = 1"), "milestone"),
            (file("c.yaml", b"scopes: [a]\nmilestone: 1"), "milestone"),
            (file("d.json", b"{\"scopes\": [\"\xff\"]}"), "not UTF-8 at byte 13"),
            (directory.path().join("absent.json"), "cannot be read"),
        ] {
            let text = read::<AgentStateFile>(&path).expect_err(part).message().to_owned();
            let named = text.contains(&path.display().to_string());
            assert!(named && text.contains(part), "{text}");
        }
    }
}
