//! Finds the files of tools that a command was given.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;

/// Returns the named files and every `*.json` of the named directories, sorted by name. No file is returned twice.
pub(in crate::cli) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for path in paths {
        let found = if path.is_dir() { in_directory(path)? } else { vec![path.clone()] };
        files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
    }
    Ok(files)
}

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("{}: cannot be listed: {error}", directory.display()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Failure::new(format!(
            "{}: no *.json files in it; each holds the tools/list of one MCP server",
            directory.display()
        )));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_listed_and_nothing_is_taken_twice() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        for name in ["b.json", "a.json", "LICENCES.md"] {
            fs::write(at(name), "[]").expect("written");
        }
        fs::create_dir(at("c.json")).expect("a directory");
        let paths = [at("b.json"), directory.path().to_path_buf(), PathBuf::from("named.txt")];
        let files = find(&paths).expect("found");
        assert_eq!(files, [at("b.json"), at("a.json"), PathBuf::from("named.txt")]);
        let failure = find(&[at("c.json")]).expect_err("empty");
        assert!(failure.message().contains("no *.json"), "{}", failure.message());
    }
}
