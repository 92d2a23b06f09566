//! Reads MCP servers with their tools from any file that `toolgate register` or `toolgate eval` accepts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{ToolsListFile, find, read_text};
use crate::cli::failure::Failure;
use crate::cli::output;
use toolgate_lab::eval::{CatalogServer, catalog_file};
use toolgate_routing::catalog::tools_list::ToolsList;

/// The key that marks a file of several servers.
#[derive(Deserialize)]
struct Several {
    servers: Option<IgnoredAny>,
}

/// Reads files and directories. Entries with the same name form one server, as in `toolgate eval`.
pub(in crate::cli) fn read_catalogs(paths: &[PathBuf]) -> Result<Vec<CatalogServer>, Failure> {
    let mut servers: Vec<CatalogServer> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for path in find(paths)? {
        for server in read_file(&path)? {
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
        return Err(Failure::new("there are no tools in these files"));
    }
    Ok(servers)
}

/// Returns the tools of a registration file.
pub(in crate::cli) fn tools_of(file: &ToolsListFile) -> Result<CatalogServer, Failure> {
    let list = ToolsList::parse(file.text.as_bytes());
    let list = list.map_err(|error| Failure::new(error.to_string()))?;
    let tools = list.tools.into_iter().map(Into::into).collect();
    Ok(CatalogServer { name: file.server.clone(), description: file.description.clone(), tools })
}

fn read_file(path: &Path) -> Result<Vec<CatalogServer>, Failure> {
    if holds_several(&read_text(path)?) {
        return Ok(catalog_file::read(path)?);
    }
    let file = ToolsListFile::read(path)?;
    if file.is_cut {
        output::warn(format_args!(
            "{}: only the first page of a listing (it has a nextCursor); fetch all pages",
            path.display()
        ));
    }
    let server = tools_of(&file);
    let named =
        |failure: Failure| Failure::new(format!("{}: {}", path.display(), failure.message()));
    Ok(vec![server.map_err(named)?])
}

/// Returns true if a file is in the format for evaluations, and not one server's listing.
fn holds_several(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let top = serde_json::from_str::<Several>(text).ok().filter(|_| text.starts_with('{'));
    top.is_some_and(|top| top.servers.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("a.json", r#"[{"name": "x"}]"#),
            ("b.json", r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "y"}]}}"#),
            ("c.json", r#"{"name": "git", "description": "Git", "tools": [{"name": "z"}]}"#),
            ("d.json", r#"{"servers": [{"name": "git", "tools": [{"name": "w"}]}]}"#),
        ] {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        let servers = read_catalogs(&[directory.path().to_path_buf()]).expect("servers");
        let shape: Vec<_> = servers.iter().map(|s| (s.name.as_str(), s.tools.len())).collect();
        assert_eq!(shape, [("a", 1), ("b", 1), ("git", 2)]);
        assert_eq!(&*servers[2].tools[1], r#"{"name": "w"}"#);
    }

    #[test]
    fn files_without_tools_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.json");
        for (text, part) in [
            ("{\"tools\": []}", "there are no tools"),
            ("{\"servers\": []}", "no tools in it"),
            ("{\"tools\": 3}", "no tools found"),
            ("{", "not JSON"),
        ] {
            std::fs::write(&path, text).expect("written");
            let failure = read_catalogs(std::slice::from_ref(&path)).expect_err(text);
            assert!(failure.message().contains(part), "{}", failure.message());
        }
    }
}
