//! Variables and files that values of a server need and that are not there. The server waits for them; the others serve.

use std::collections::BTreeMap;

use super::values::{Lack, lacks_of_text, lacks_of_value};
use super::{Config, EntryFile, ServerConfig, env_file, places};

/// Value of a server that needs a variable or a file that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingValue {
    /// Key of the value within the server's entry, such as `env.GITHUB_TOKEN`.
    pub key: String,
    lack: Lack,
    /// Another remedy than to set a variable; empty if there is none.
    remedy: &'static str,
}

impl MissingValue {
    /// Returns the variable that is not set; `None` if a file can't be read.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match &self.lack {
            Lack::Variable(name) => Some(name),
            Lack::File(..) => None,
        }
    }

    /// Returns what is missing and how to mend it, as a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let problem = self.lack.problem();
        match &self.lack {
            Lack::Variable(name) => format!(
                "`{}`: {problem}: set it where the gateway starts (export {name}=...){}",
                self.key, self.remedy
            ),
            Lack::File(..) => format!("`{}`: {problem}", self.key),
        }
    }
}

/// Content of a server's file of variables, as it was when it was read; nothing without one.
#[derive(Default)]
pub(super) struct FileVariables {
    pub(super) variables: BTreeMap<String, String>,
    /// Reasons for which there is none: what its name needs, or else the file itself.
    lacks: Vec<Lack>,
}

impl ServerConfig {
    /// Returns the values that need what is not there, in the order of their keys.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingValue> {
        self.missing_beside(&self.file_variables(env_file::read))
    }

    /// Returns what [`Self::missing`] does, with a file of variables that has been read.
    pub(super) fn missing_beside(&self, file: &FileVariables) -> Vec<MissingValue> {
        let mut missing = Vec::new();
        let mut add = |key: &str, lacks: Vec<Lack>| {
            let remedy = self.file.remedy(key);
            let value = |lack| MissingValue { key: key.to_owned(), lack, remedy };
            missing.extend(lacks.into_iter().map(value));
        };
        for word in &self.command {
            add("command", lacks_of_text(word, self.file));
        }
        if let Some(url) = &self.url {
            add("url", lacks_of_text(url, self.file));
        }
        for (key, path) in self.sandbox.iter().flat_map(|sandbox| sandbox.paths()) {
            add(key, lacks_of_value(path, self.file));
        }
        if let Some(cwd) = &self.cwd {
            add("cwd", lacks_of_value(cwd, self.file));
        }
        if let Some(homes) = &self.homes {
            add("homes", lacks_of_value(homes, self.file));
        }
        add("env_file", file.lacks.clone());
        for (table, values) in [("env", &self.env), ("headers", &self.headers)] {
            for (name, value) in values {
                add(&format!("{table}.{name}"), lacks_of_value(value, self.file));
            }
        }
        let secret = self.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_ref());
        if let Some(secret) = secret {
            add("oauth.client_secret", lacks_of_value(secret, EntryFile::Gateway));
        }
        missing
    }

    /// Reads the file of variables, if the server has one.
    pub(super) fn file_variables(
        &self,
        read: impl FnOnce(&str) -> Result<BTreeMap<String, String>, String>,
    ) -> FileVariables {
        let Some(file) = &self.env_file else { return FileVariables::default() };
        let lacks = lacks_of_text(file, self.file);
        if !lacks.is_empty() {
            return FileVariables { lacks, ..FileVariables::default() };
        }
        let path = self.text(file);
        match read(&path) {
            Ok(variables) => FileVariables { variables, ..FileVariables::default() },
            Err(problem) => {
                FileVariables { lacks: vec![Lack::File(path, problem)], ..FileVariables::default() }
            }
        }
    }
}

impl EntryFile {
    /// Returns what may be written in the place of a variable that is not set, as the end of a sentence.
    fn remedy(self, key: &str) -> &'static str {
        match (self, key) {
            (Self::Host, _) => "",
            (Self::Gateway, "command" | "url" | "env_file") => {
                ", or write \"$${\" for a \"${\" that the gateway leaves as it is"
            }
            (Self::Gateway, _) => ", or write \"file:PATH\" in its place",
        }
    }
}

impl Config {
    /// Returns the servers that wait for variables or files, by name, with what each lacks.
    #[must_use]
    pub fn waiting(&self) -> BTreeMap<String, Vec<MissingValue>> {
        let running = self.server.iter().filter(|(_, server)| !server.disabled);
        let missing = running.map(|(name, server)| (name.clone(), server.missing()));
        missing.filter(|(_, missing)| !missing.is_empty()).collect()
    }
}

/// Returns the line of a server's key in the text of the gateway's file, from 1.
#[must_use]
pub fn line_of(text: &str, server: &str, key: &str) -> Option<usize> {
    places::line(text, server, key)
}

/// Returns what a server waits for, in a few words; `None` if it lacks nothing.
pub(super) fn waits_for(missing: &[MissingValue]) -> Option<String> {
    let mut variables: Vec<&str> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for value in missing {
        match value.variable() {
            Some(name) if variables.contains(&name) => {}
            Some(name) => variables.push(name),
            None => others.push(value.lack.problem()),
        }
    }
    let set = (!variables.is_empty()).then(|| format!("set {}", variables.join(", ")));
    let all: Vec<String> = set.into_iter().chain(others).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
