//! Catalog file to evaluate: a file of several MCP servers, a file of one, or a directory of such files. Tools stay
//! JSON text; the product checks them later.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input_error::{InputError, read_text};

/// MCP server of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogServer {
    /// Name in the file.
    pub name: String,
    /// Description of the server; empty if the file has none.
    pub description: String,
    /// Tools as JSON text, unchanged from the file.
    pub tools: Vec<Box<str>>,
}

const EXPECTED: &str = "expected {\"servers\": [{\"name\", \"description\", \"tools\"}]}, or one server's \
                        {\"name\", \"tools\"} with the tools as its tools/list has them";

/// Top-level object of a file: several servers, or one.
#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    servers: Option<Vec<Server<'a>>>,
    name: Option<String>,
    description: Option<String>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Server<'a> {
    name: String,
    description: Option<String>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// Reads a file, or every `*.json` of a directory in the order of the file names. Entries with the same name become one
/// server.
///
/// # Errors
/// The file at fault, with the line if it is known.
pub fn read(path: &Path) -> Result<Vec<CatalogServer>, InputError> {
    let mut servers: Vec<CatalogServer> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for file in files(path)? {
        for server in parse(&file, &read_text(&file)?)? {
            match places.get(&server.name) {
                Some(place) => servers[*place].tools.extend(server.tools),
                None => {
                    places.insert(server.name.clone(), servers.len());
                    servers.push(server);
                }
            }
        }
    }
    if servers.iter().all(|server| server.tools.is_empty()) {
        return Err(InputError::of_file(path, "no tools in it"));
    }
    Ok(servers)
}

/// Returns the file itself, or every `*.json` of a directory in the order of their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, InputError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| InputError::of_file(path, format!("cannot be listed: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.is_file() && file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(InputError::of_file(path, "no *.json files in it"));
    }
    files.sort();
    Ok(files)
}

fn parse(path: &Path, text: &str) -> Result<Vec<CatalogServer>, InputError> {
    let is_object = text.trim_start().starts_with('{');
    let top: Top<'_> =
        serde_json::from_str(text).map_err(|error| InputError::of_json(path, 1, &error))?;
    // serde would read an array as the fields of an object in order.
    match (is_object, top) {
        (true, Top { servers: Some(servers), .. }) => {
            Ok(servers.into_iter().map(CatalogServer::from).collect())
        }
        (true, Top { name: Some(name), description, tools: Some(tools), .. }) => {
            Ok(vec![Server { name, description, tools }.into()])
        }
        _ => Err(InputError::of_file(path, EXPECTED)),
    }
}

impl From<Server<'_>> for CatalogServer {
    fn from(server: Server<'_>) -> Self {
        let tools = server.tools.into_iter().map(|tool| tool.get().into()).collect();
        let description = server.description.unwrap_or_default();
        Self { name: server.name, description, tools }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GIT: &str =
        r#"{"name": "git", "description": "Git", "tools": [{"name": "a"}, {"name" : "b"}]}"#;

    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("c.json");
        fs::write(&path, text).expect("written");
        (directory, path)
    }

    fn problem(text: &str) -> String {
        let (_directory, path) = written(text);
        let text = read(&path).expect_err(text).to_string();
        let after = text.find("c.json").expect("the file's name");
        text[after..].to_owned()
    }

    #[test]
    fn both_shapes_are_read_and_tools_stay_as_they_are() {
        let (_one, path) = written(GIT);
        let git = read(&path).expect("one server");
        assert_eq!((git.len(), git[0].name.as_str()), (1, "git"));
        assert_eq!(&*git[0].tools[1], r#"{"name" : "b"}"#);
        let many = format!("\u{feff}{{\"servers\": [{GIT}, {{\"name\": \"x\", \"tools\": []}}]}}");
        let (_many, path) = written(&many);
        let servers = read(&path).expect("two servers");
        assert_eq!((&servers[0], servers[1].name.as_str()), (&git[0], "x"));
    }

    #[test]
    fn a_directory_is_read_by_name_and_entries_of_one_name_are_one_server() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).expect("written");
        };
        write("b.json", GIT);
        write("a.json", r#"{"name": "time", "tools": [{"name": "now"}]}"#);
        write("c.json", r#"{"name": "git", "tools": [{"name": "c"}]}"#);
        write("LICENCES.md", "no JSON");
        let servers = read(directory.path()).expect("servers");
        let shape: Vec<_> = servers.iter().map(|s| (s.name.as_str(), s.tools.len())).collect();
        assert_eq!(shape, [("time", 1), ("git", 3)]);
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        assert_eq!(problem("{\n\"servers\": [\n}"), "c.json:3: column 1: expected value");
        assert!(problem("{\"servers\": [{\"tools\": []}]}").contains("missing field `name`"));
        assert!(problem("{\"tools\": []}").contains("expected {\"servers\""));
        assert!(problem(r#"[{"name": "a"}]"#).contains("c.json"));
        assert_eq!(problem("{\"servers\": []}"), "c.json: no tools in it");
        let absent = read(Path::new("absent.json")).expect_err("no file").to_string();
        assert!(absent.starts_with("absent.json: cannot be read"), "{absent}");
        let empty = tempfile::tempdir().expect("a directory");
        assert!(read(empty.path()).expect_err("empty").to_string().contains("no *.json"));
    }
}
