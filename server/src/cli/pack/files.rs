//! The packs that `toolgate pack build` writes, one per MCP server. A pack is replaced completely after each finished
//! tool, so that an interruption loses nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::documents::read_text;
use crate::cli::failure::Failure;
use crate::cli::files;
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::pack_build::{Voices, to_yaml};
use toolgate_routing::packs::Pack;
use toolgate_routing::packs::document::{NOT, PackedTool};

/// All packs, by the name of the MCP server in its file.
#[derive(Debug)]
pub(super) struct PackFiles(BTreeMap<String, PackFile>);

/// The pack of one MCP server.
#[derive(Debug)]
pub(super) struct PackFile {
    path: PathBuf,
    servers: Vec<String>,
    /// Requests by tool.
    pub(super) tools: BTreeMap<String, Voices>,
}

impl PackFiles {
    /// Reads the existing packs, and checks that they can be written. For one MCP server, `output` is the file; for
    /// several, it is a folder with a file for each.
    pub(super) fn open(output: &Path, stock: &Stock, resume: bool) -> Result<Self, Failure> {
        let servers = stock.catalog.servers.iter();
        let names: Vec<_> = servers
            .map(|server| (&server.record.name, stock.names.in_file(&server.record.name)))
            .collect();
        let in_folder = names.len() > 1 || output.is_dir();
        if in_folder {
            fs::create_dir_all(output).map_err(|error| {
                Failure::new(format!(
                    "{}: is to be a folder, with a file for each of {} MCP servers: {error}",
                    output.display(),
                    names.len()
                ))
            })?;
        }
        let mut opened = BTreeMap::new();
        for (legal, name) in names {
            let path = match in_folder {
                true => output.join(format!("{}.yaml", legal.as_str())),
                false => output.to_owned(),
            };
            let file = PackFile::open(path, name, resume)?;
            file.save()?;
            opened.insert(name.to_owned(), file);
        }
        Ok(Self(opened))
    }

    /// Returns the pack of an MCP server.
    pub(super) fn of(&self, server: &str) -> Option<&PackFile> {
        self.0.get(server)
    }

    /// Sets the requests of a tool, and saves its pack.
    pub(super) fn set(&mut self, server: &str, tool: &str, voices: Voices) -> Result<(), Failure> {
        let Some(file) = self.0.get_mut(server) else { return Ok(()) };
        file.tools.insert(tool.to_owned(), voices);
        file.save()
    }

    /// Returns the paths of the packs, in the order of their MCP servers.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.values().map(|file| file.path.as_path())
    }
}

impl PackFile {
    fn open(path: PathBuf, server: &str, resume: bool) -> Result<Self, Failure> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("yaml" | "yml")) {
            let problem = "a pack is written as YAML, and read by its name: use .yaml";
            return Err(Failure::usage(format!("{}: {problem}", path.display())));
        }
        if !path.exists() {
            return Ok(Self { path, servers: vec![server.to_owned()], tools: BTreeMap::new() });
        }
        let pack = Pack::parse(&read_text(&path)?).map_err(|mistakes| {
            let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
            Failure::new(format!("{}: {first}", path.display()))
        })?;
        if !resume && !pack.tools.is_empty() {
            let problem = "is there already: --resume keeps its tools and asks for the others";
            return Err(Failure::usage(format!("{}: {problem}", path.display())));
        }
        let tools = pack.tools.into_iter().map(|(name, tool)| (name, voices(tool)));
        Ok(Self { path, servers: pack.servers, tools: tools.collect() })
    }

    fn save(&self) -> Result<(), Failure> {
        files::replace(&self.path, to_yaml(&self.servers, &self.tools))
    }
}

fn voices(tool: PackedTool) -> Voices {
    let mut voices = tool.voices;
    if !tool.not.is_empty() {
        voices.insert(NOT.to_owned(), tool.not);
    }
    voices
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_config::LimitsConfig;
    use toolgate_lab::eval::CatalogServer;

    fn stock(servers: &[&str]) -> Stock {
        let server = |name: &&str| CatalogServer {
            name: (*name).into(),
            description: String::new(),
            tools: vec![r#"{"name": "t", "inputSchema": {}}"#.into()],
        };
        let servers: Vec<_> = servers.iter().map(server).collect();
        Stock::check(&servers, &LimitsConfig::default())
    }

    fn requests() -> Voices {
        [("terse", "a b"), ("not", "c d")]
            .map(|(voice, text)| (voice.into(), vec![text.into()]))
            .into()
    }

    #[test]
    fn what_was_written_is_kept_by_the_next_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("packs");
        let mut files = PackFiles::open(&output, &stock(&["a", "b.c"]), false).expect("open");
        files.set("b.c", "t", requests()).expect("saved");
        let again = PackFiles::open(&output, &stock(&["a", "b.c"]), true).expect("open");
        assert_eq!(again.of("b.c").map(|file| &file.tools["t"]), Some(&requests()));
        assert_eq!(again.of("a").map(|file| file.tools.len()), Some(0));
        let paths: Vec<_> = again.paths().map(Path::to_owned).collect();
        assert_eq!(paths, [output.join("a.yaml"), output.join("b-c.yaml")]);
        assert_eq!(fs::read_dir(&output).expect("a listing").count(), 2);
    }

    #[test]
    fn what_would_be_lost_or_not_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("bad.yaml"), "servers: [a]\n").expect("written");
        fs::write(at("full.yaml"), "servers: [a]\ntools: {t: {terse: [a b]}}\n").expect("written");
        fs::write(at("empty.yaml"), "servers: [a]\ntools: {}\n").expect("written");
        for (output, part) in [
            (at("bad.yaml"), "missing field `tools`"),
            (at("full.yaml"), "--resume keeps its tools"),
            (at("x.json"), "use .yaml"),
            (at("absent/x.yaml"), "cannot be written"),
        ] {
            let failure = PackFiles::open(&output, &stock(&["a"]), false).expect_err(part);
            assert!(failure.message().contains(part), "{}", failure.message());
        }
        assert!(PackFiles::open(&at("empty.yaml"), &stock(&["a"]), false).is_ok());
        let failure =
            PackFiles::open(&at("bad.yaml"), &stock(&["a", "b"]), true).expect_err("a file");
        assert!(failure.message().contains("is to be a folder"), "{}", failure.message());
    }
}
