//! Sandbox of a server's program: `server.NAME.sandbox`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolgate_upstream::Sandbox;

use super::{ServerConfig, values};

/// Files that a program may use beside those of the system, and whether it may use TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// Files and folders that it may read and execute, values as `cwd` is one.
    #[serde(default)]
    pub read: Vec<String>,
    /// The same, which it may change too.
    #[serde(default)]
    pub write: Vec<String>,
    /// True if it may use TCP.
    #[serde(default)]
    pub network: bool,
    /// True if it starts with less where the kernel can't do all of this.
    #[serde(default)]
    pub best_effort: bool,
}

impl SandboxConfig {
    /// Returns the values that name files, each with its key.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let read = self.read.iter().map(|path| ("sandbox.read", path));
        read.chain(self.write.iter().map(|path| ("sandbox.write", path)))
    }
}

/// Returns the sandbox of a server's program; `None` if it has none.
///
/// # Errors
/// The problem of its keys.
pub(super) fn sandbox(server: &ServerConfig) -> Result<Option<Sandbox>, String> {
    let Some(config) = &server.sandbox else { return Ok(None) };
    if !cfg!(target_os = "linux") {
        return Err("`sandbox` needs Linux".to_owned());
    }
    for (key, value) in config.paths() {
        let is_known = values::lacks_of_value(value, server.file).is_empty();
        let path = server.value(value);
        if is_known && !Path::new(&path).exists() {
            return Err(format!("`{key}` names no file and no folder: {path:?}"));
        }
    }
    let paths = |values: &[String]| values.iter().map(|path| absolute(server, path)).collect();
    let SandboxConfig { read, write, network, best_effort } = config;
    Ok(Some(Sandbox {
        read: paths(read),
        write: paths(write),
        network: *network,
        best_effort: *best_effort,
    }))
}

/// Returns a path as the gateway means it: a program may start in another folder.
fn absolute(server: &ServerConfig, path: &str) -> PathBuf {
    let path = PathBuf::from(server.value(path));
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &str) -> Result<Option<Sandbox>, String> {
        let server: ServerConfig = toml::from_str(keys).map_err(|error| error.to_string())?;
        sandbox(&server)
    }

    #[test]
    fn a_sandbox_names_files_that_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        let keys = format!(
            "command = [\"x\"]\nsandbox = {{ read = [{:?}], write = [\"/tmp\"] }}",
            path.to_string()
        );
        let wanted = Sandbox {
            read: vec![folder.path().to_owned()],
            write: vec![PathBuf::from("/tmp")],
            ..Sandbox::default()
        };
        assert_eq!(of(&keys), Ok(Some(wanted)));
        assert_eq!(of("command = [\"x\"]"), Ok(None));
        for (keys, told) in [
            ("read = [\"/no/such/folder\"]", "`sandbox.read` names no file"),
            ("write = [\"\"]", "`sandbox.write` names no file"),
            ("reads = []", "unknown field"),
        ] {
            let problem = of(&format!("command = [\"x\"]\nsandbox = {{ {keys} }}"));
            assert!(problem.clone().is_err_and(|problem| problem.contains(told)), "{problem:?}");
        }
    }
}
