//! The settings files that `toolgate summarize` writes, one per MCP server. Their other content stays. Each file is
//! replaced completely, so that an interruption loses nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::cli::documents::{self, RegistrationSettings};
use crate::cli::failure::Failure;
use crate::cli::files;
use toolgate_core::identity::ToolId;
use toolgate_lab::eval::stock::Stock;

/// Interval between saves of new results.
const EVERY: Duration = Duration::from_secs(1);

/// All settings files.
#[derive(Debug)]
pub(super) struct SettingsFiles {
    by_server: BTreeMap<String, SettingsFile>,
    saved: Instant,
}

#[derive(Debug)]
struct SettingsFile {
    path: PathBuf,
    document: Map<String, Value>,
    is_changed: bool,
}

impl SettingsFiles {
    /// Reads the existing files, and checks that they can be written. For one MCP server, `out` is the file; for
    /// several, it is a folder with a file for each.
    pub(super) fn open(out: &Path, stock: &Stock) -> Result<Self, Failure> {
        let names: Vec<&str> =
            stock.catalog.servers.iter().map(|server| server.record.name.as_str()).collect();
        let in_folder = names.len() > 1 || out.is_dir();
        if in_folder {
            fs::create_dir_all(out).map_err(|error| {
                Failure::new(format!(
                    "{}: is to be a folder, with a file for each of {} MCP servers: {error}",
                    out.display(),
                    names.len()
                ))
            })?;
        }
        let path =
            |name: &str| if in_folder { out.join(format!("{name}.json")) } else { out.to_owned() };
        let file = |name: &&str| Ok(((*name).to_owned(), SettingsFile::open(path(name))?));
        let by_server = names.iter().map(file).collect::<Result<_, Failure>>()?;
        let mut files = Self { by_server, saved: Instant::now() };
        files.save()?;
        Ok(files)
    }

    /// Returns the summary of a tool; `None` if it has none.
    pub(super) fn summary(&self, tool: &ToolId) -> Option<&str> {
        let file = self.by_server.get(tool.server.as_str())?;
        let settings = file.tools().iter().find(|settings| settings["name"] == tool.name.as_str());
        settings?["summary"].as_str().filter(|summary| !summary.trim().is_empty())
    }

    /// Sets or removes the summary of a tool.
    pub(super) fn set(&mut self, tool: &ToolId, summary: Option<&str>) {
        if let Some(file) = self.by_server.get_mut(tool.server.as_str()) {
            file.set(tool.name.as_str(), summary);
        }
    }

    /// Saves the changed files if the last save is at least a second ago.
    pub(super) fn save_now_and_then(&mut self) -> Result<(), Failure> {
        if self.saved.elapsed() < EVERY { Ok(()) } else { self.save() }
    }

    /// Saves the changed files.
    pub(super) fn save(&mut self) -> Result<(), Failure> {
        self.saved = Instant::now();
        self.by_server.values_mut().filter(|file| file.is_changed).try_for_each(SettingsFile::save)
    }

    /// Returns the paths of the files, in the order of their MCP servers.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.by_server.values().map(|file| file.path.as_path())
    }
}

impl SettingsFile {
    fn open(path: PathBuf) -> Result<Self, Failure> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let Some("toml" | "yaml" | "yml") = extension {
            let problem = "is written as JSON, and would be read as something else by its name";
            return Err(Failure::usage(format!("{}: {problem}: use .json", path.display())));
        }
        let document = if path.exists() {
            // A file that a registration would refuse is refused here already.
            let _: RegistrationSettings = documents::read(&path)?;
            documents::read(&path)?
        } else {
            Map::new()
        };
        Ok(Self { path, document, is_changed: true })
    }

    fn tools(&self) -> &[Value] {
        self.document.get("tools").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn set(&mut self, name: &str, summary: Option<&str>) {
        let tools = self.document.entry("tools").or_insert_with(|| json!([]));
        let Value::Array(tools) = tools else { return };
        let place = tools.iter().position(|settings| settings["name"] == name);
        match (place.map(|place| &mut tools[place]), summary) {
            (Some(settings), Some(summary)) => settings["summary"] = json!(summary),
            (Some(Value::Object(settings)), None) => drop(settings.remove("summary")),
            (None, Some(summary)) => tools.push(json!({ "name": name, "summary": summary })),
            _ => {}
        }
        // Entries that held nothing but a summary are removed.
        tools.retain(|settings| settings.as_object().is_none_or(|fields| fields.len() > 1));
        self.is_changed = true;
    }

    fn save(&mut self) -> Result<(), Failure> {
        let text = format!("{:#}\n", Value::Object(self.document.clone()));
        files::replace(&self.path, &text)?;
        self.is_changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_config::LimitsConfig;
    use toolgate_core::identity::{ServerName, ToolName};
    use toolgate_lab::eval::CatalogServer;

    fn stock(servers: &[&str]) -> Stock {
        let tools = || vec![r#"{"name": "t", "inputSchema": {}}"#.into()];
        let server = |name: &&str| CatalogServer {
            name: (*name).into(),
            description: String::new(),
            tools: tools(),
        };
        let servers: Vec<_> = servers.iter().map(server).collect();
        Stock::check(&servers, &LimitsConfig::default())
    }

    fn tool(server: &str, name: &str) -> ToolId {
        let server = ServerName::parse(server).expect("a name");
        ToolId { server, name: ToolName::parse(name).expect("a name") }
    }

    #[test]
    fn summaries_are_added_and_everything_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("git.json");
        let text = r#"{"required_scopes": ["r"], "tools": [{"name": "a", "critical": true}, {"name": "b", "summary": "b: B"}]}"#;
        fs::write(&out, text).expect("written");
        let mut files = SettingsFiles::open(&out, &stock(&["git"])).expect("open");
        assert_eq!(files.summary(&tool("git", "b")), Some("b: B"));
        assert_eq!(files.summary(&tool("git", "a")), None);
        files.set(&tool("git", "a"), Some("a: A"));
        files.set(&tool("git", "b"), None);
        files.set(&tool("git", "c"), Some("c: C"));
        files.save().expect("saved");
        let read: Value = documents::read(&out).expect("JSON");
        let wanted = json!({"required_scopes": ["r"], "tools": [
            {"name": "a", "critical": true, "summary": "a: A"}, {"name": "c", "summary": "c: C"}]});
        assert_eq!(read, wanted);
        let _: RegistrationSettings = documents::read(&out).expect("what a registration takes");
        assert_eq!(fs::read_dir(folder.path()).expect("a listing").count(), 1);
    }

    #[test]
    fn several_servers_have_a_file_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("settings");
        let mut files = SettingsFiles::open(&out, &stock(&["a", "b"])).expect("open");
        files.set(&tool("b", "t"), Some("t: T"));
        files.save().expect("saved");
        let again = SettingsFiles::open(&out, &stock(&["a", "b"])).expect("open");
        assert_eq!(again.summary(&tool("b", "t")), Some("t: T"));
        let paths: Vec<_> = again.paths().map(Path::to_owned).collect();
        assert_eq!(paths, [out.join("a.json"), out.join("b.json")]);
    }

    #[test]
    fn what_could_not_be_registered_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("bad.json"), "{\"tool\": []}").expect("written");
        for (out, part) in [
            (at("bad.json"), "unknown field `tool`"),
            (at("x.toml"), "use .json"),
            (at("absent/x.json"), "cannot be written"),
        ] {
            let failure = SettingsFiles::open(&out, &stock(&["a"])).expect_err(part);
            assert!(failure.message().contains(part), "{}", failure.message());
        }
        let failure =
            SettingsFiles::open(&at("bad.json"), &stock(&["a", "b"])).expect_err("a file");
        assert!(failure.message().contains("is to be a folder"), "{}", failure.message());
    }
}
