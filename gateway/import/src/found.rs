//! MCP servers in hosts' files, and their entries in a gateway's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::Host;
use crate::address::is_gateway;
use crate::carried::{has_env_file, left_out, remarks};
use crate::plain::without_comments;
use crate::reference::{Translated, Writer, literal, reference, variable_name};

/// Largest number of characters of a server's name, as the gateway takes it.
const NAME_MAX: usize = 64;

/// Parts of names of variables and headers whose values are secrets.
const SECRET: [&str; 8] =
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION", "COOKIE"];

/// Words before a secret in a header.
const SCHEMES: [&str; 5] = ["", "bearer", "basic", "token", "apikey"];

/// MCP server in a host's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// Name in the host's file.
    pub name: String,
    /// Its place.
    pub place: Place,
    /// Folder of the one project that it belongs to within a file of all projects.
    pub project: Option<String>,
    /// Variables in the place of what the host alone knows.
    pub asked: Vec<AskedValue>,
}

/// Variable in the place of a value that a host alone knows, such as an answer of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedValue {
    /// The variable.
    pub variable: String,
    /// The value in the host's file, with the host's own description of it.
    pub meaning: String,
}

/// Surroundings of a host's file.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Path of the file.
    pub file: &'a Path,
    /// Home of the user.
    pub home: &'a Path,
    /// Folder of the current project.
    pub project: &'a Path,
    /// Base URLs of the gateway, besides that of its defaults.
    pub own: &'a [String],
    /// Returns true for a variable that is set.
    pub is_set: fn(&str) -> bool,
}

/// Servers of a host's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFile {
    /// Those that are not turned off, without the gateway itself. References are in the gateway's syntax.
    pub servers: Vec<FoundServer>,
    /// Remarks for people on what is left out.
    pub remarks: Vec<String>,
}

/// Place of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A program that speaks MCP on its standard streams.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// Variables of its environment.
        env: BTreeMap<String, String>,
        /// File of more such variables. Those of `env` go before them.
        env_file: Option<String>,
        /// Folder that it starts in, if the file names one.
        cwd: Option<String>,
    },
    /// A server behind a URL.
    Url {
        /// The URL.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
}

/// Problem of a host's file. The text says where and what.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl ReadError {
    pub(crate) fn new(problem: String) -> Self {
        Self(problem)
    }
}

/// Entry of a gateway's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEntry {
    /// Name of the server in the gateway.
    pub name: String,
    /// TOML of the entry.
    pub text: String,
    /// Variables to set before the gateway starts, since secrets are not copied.
    pub secrets: Vec<String>,
}

/// Returns the servers that a host's file names, of the user and of each project.
///
/// # Errors
/// [`ReadError`] if the file is neither JSON, with comments or without, nor TOML where the host writes that.
pub fn read(host: Host, text: &str, around: Surroundings<'_>) -> Result<HostFile, ReadError> {
    let root: Value = if host == Host::Codex {
        let table: toml::Table =
            toml::from_str(text).map_err(|error| ReadError(error.to_string()))?;
        serde_json::to_value(table).map_err(|error| ReadError(error.to_string()))?
    } else {
        serde_json::from_str(&without_comments(text))
            .map_err(|error| ReadError(format!("it is no JSON: {error}")))?
    };
    let mut read = HostFile::default();
    let section = Section { host, around, inputs: &root["inputs"], project: None };
    section.read(&root[host.section()], &mut read);
    if host == Host::ClaudeCode {
        for (project, settings) in root["projects"].as_object().into_iter().flatten() {
            let section = Section { project: Some(project), ..section };
            section.read(&settings[host.section()], &mut read);
        }
    }
    Ok(read)
}

/// Section of a host's file that names servers.
#[derive(Clone, Copy)]
struct Section<'a> {
    host: Host,
    around: Surroundings<'a>,
    /// Questions that VS Code asks its user.
    inputs: &'a Value,
    /// Folder of the project whose servers they are, within a file of all projects.
    project: Option<&'a String>,
}

impl Section<'_> {
    fn read(&self, servers: &Value, into: &mut HostFile) {
        for (name, entry) in servers.as_object().into_iter().flatten() {
            let Some((entry, place)) =
                entry.as_object().and_then(|entry| Some((entry, place(entry)?)))
            else {
                into.remarks.push(left_out(name, entry));
                continue;
            };
            if is_gateway(name, &place, self.around.own) {
                into.remarks.push(format!("`{name}` is this gateway, and is left out"));
                continue;
            }
            into.remarks.extend(remarks(self.host, name, entry));
            if let Place::Command { env, .. } = &place {
                let is_unset =
                    |name: &String| !(self.around.is_set)(name) && !env.contains_key(name);
                for variable in passed_on(entry).into_iter().filter(is_unset) {
                    into.remarks.push(format!(
                        "`{name}.env_vars`: {variable} is not set here and is left out; env = {{ {variable} = \"env:{variable}\" }} in the new entry waits for it"
                    ));
                }
            }
            into.servers.push(self.translated(name, entry, place));
        }
    }

    /// Returns a server with its references in the gateway's syntax.
    fn translated(&self, name: &str, entry: &Map<String, Value>, place: Place) -> FoundServer {
        let Surroundings { file, home, project, .. } = self.around;
        let own = self.project.map(Path::new);
        let folder = file.parent().unwrap_or(project);
        let writer = Writer { host: self.host, home, project: own.unwrap_or(project), folder };
        let mut asked = Vec::new();
        let mut take = |Translated { text, asked: found }: Translated| {
            asked.extend(found);
            text
        };
        let place = match place {
            Place::Command { words, env, env_file, cwd } => {
                let words: Vec<String> =
                    words.iter().map(|word| take(writer.word(name, word))).collect();
                let value = |(key, value): (String, String)| {
                    let value = take(writer.value(name, &value, &key));
                    (key, value)
                };
                let mut env: BTreeMap<String, String> = env.into_iter().map(value).collect();
                for variable in passed_on(entry) {
                    if (self.around.is_set)(&variable) {
                        let value = format!("env:{variable}");
                        env.entry(variable).or_insert(value);
                    }
                }
                let env_file = env_file.filter(|_file| has_env_file(self.host));
                let env_file = env_file.map(|file| take(writer.path(name, &file)));
                let cwd = cwd.map(|cwd| take(writer.value(name, &cwd, "cwd")));
                let needed = own.filter(|_| words.iter().any(|word| is_relative(word)));
                let cwd = cwd.or_else(|| needed.map(|folder| folder.display().to_string()));
                Place::Command { words, env, env_file, cwd }
            }
            Place::Url { url, headers } => {
                let url = take(writer.word(name, &url));
                let value = |(key, value): (String, String)| {
                    let variable = variable_name(name, &key);
                    let value = take(writer.value(name, &value, &variable));
                    (key, value)
                };
                let mut headers: BTreeMap<String, String> =
                    headers.into_iter().map(value).collect();
                headers.extend(headers_of_variables(entry));
                Place::Url { url, headers }
            }
        };
        let asked = asked
            .into_iter()
            .map(|(asked, variable)| AskedValue { meaning: self.meaning(&asked), variable });
        let asked = asked.collect();
        FoundServer { name: name.to_owned(), place, project: self.project.cloned(), asked }
    }

    /// Returns what the host says of a value that it alone knows.
    fn meaning(&self, asked: &str) -> String {
        let id = asked.strip_prefix("input:");
        let inputs = self.inputs.as_array().into_iter().flatten();
        let described = inputs.filter(|input| input["id"].as_str() == id && id.is_some());
        match described.filter_map(|input| input["description"].as_str()).next() {
            Some(description) => format!("${{{asked}}} of the host: {description}"),
            None => format!("${{{asked}}} of the host"),
        }
    }
}

/// Returns whether a word names a file by a way from the current folder.
fn is_relative(word: &str) -> bool {
    matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../")
}

/// Returns the variables that Codex hands over from its own environment, if they are set.
fn passed_on(entry: &Map<String, Value>) -> Vec<String> {
    let names = entry.get("env_vars").and_then(Value::as_array).into_iter().flatten();
    let names = names.filter_map(|name| name.as_str().or_else(|| name.get("name")?.as_str()));
    names.map(str::to_owned).collect()
}

/// Returns the headers whose values Codex takes from variables.
fn headers_of_variables(entry: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (header, variable) in texts(entry, &["env_http_headers"]) {
        headers.insert(header, format!("env:{variable}"));
    }
    if let Some(variable) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        headers.insert("Authorization".to_owned(), format!("Bearer {}", reference(variable)));
    }
    headers
}

/// Returns the files in which a host keeps servers, each once.
#[must_use]
pub fn files(host: Host, home: &Path, project: &Path) -> Vec<PathBuf> {
    let user = host.file(home, project, crate::Scope::User);
    let mut files = vec![user.clone(), host.file(home, project, crate::Scope::Project)];
    let in_project: &[&str] = match host {
        Host::ClaudeCode | Host::ClaudeDesktop | Host::Vscode => &[],
        Host::Cursor => &[".cursor/mcp.json"],
        Host::Codex => &[".codex/config.toml"],
        Host::GeminiCli => &[".gemini/settings.json"],
        Host::Opencode => &[
            "opencode.json",
            "opencode.jsonc",
            ".opencode/opencode.json",
            ".opencode/opencode.jsonc",
        ],
        Host::Zed => &[".zed/settings.json"],
    };
    match host {
        Host::Opencode => {
            files.push(user.with_extension("jsonc"));
            files.push(user.with_file_name("config.json"));
        }
        Host::Vscode => {
            let is_mac = cfg!(target_os = "macos");
            let configuration = if is_mac { "Library/Application Support" } else { ".config" };
            for edition in ["Code", "Code - Insiders", "VSCodium"] {
                let user = home.join(configuration).join(edition).join("User");
                files.push(user.join("mcp.json"));
                files.extend(profiles(&user));
            }
        }
        _ => {}
    }
    files.extend(in_project.iter().map(|file| project.join(file)));
    let mut once: Vec<PathBuf> = Vec::new();
    for file in files {
        if !once.contains(&file) {
            once.push(file);
        }
    }
    once
}

/// Returns the files of VS Code's profiles, in the order of their folders.
fn profiles(user: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(user.join("profiles")).into_iter().flatten();
    let mut files: Vec<PathBuf> =
        folders.filter_map(Result::ok).map(|folder| folder.path().join("mcp.json")).collect();
    files.sort();
    files
}

/// Returns an entry of a gateway's file for each server, under names that are not among `taken`. A server that is there twice
/// has one entry.
#[must_use]
pub fn entries(servers: &[FoundServer], taken: &[String]) -> Vec<GatewayEntry> {
    let mut entries: Vec<GatewayEntry> = Vec::new();
    let mut places: Vec<&Place> = Vec::new();
    let mut values = BTreeMap::new();
    for server in servers {
        if places.contains(&&server.place) {
            continue;
        }
        places.push(&server.place);
        let is_taken =
            |name: &String| taken.contains(name) || entries.iter().any(|entry| entry.name == *name);
        let base = gateway_name(&server.name);
        let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name));
        let name = free.unwrap_or(base);
        entries.push(entry(name, &server.place, &mut values));
    }
    entries
}

/// Returns the name with the characters that a server's name may have.
pub(crate) fn gateway_name(given: &str) -> String {
    let mut name = String::new();
    for character in given.chars() {
        let is_right = character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let next = if is_right { character } else { '-' };
        let is_repeated = !next.is_ascii_alphanumeric() && name.ends_with(next);
        if !is_repeated && name.len() < NAME_MAX - 4 {
            name.push(next);
        }
    }
    let name = name.trim_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

/// Returns true for a server that its host does not use.
pub(crate) fn is_off(entry: &Map<String, Value>) -> bool {
    entry.get("disabled") == Some(&Value::Bool(true))
        || entry.get("enabled") == Some(&Value::Bool(false))
}

pub(crate) fn place(entry: &Map<String, Value>) -> Option<Place> {
    if is_off(entry) {
        return None;
    }
    let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(*key)?.as_str());
    if let Some(url) = url {
        let headers = texts(entry, &["headers", "http_headers"]);
        return Some(Place::Url { url: url.to_owned(), headers });
    }
    let (command, owner) = match entry.get("command")? {
        // Zed has an object within.
        Value::Object(inner) => (inner.get("path").or_else(|| inner.get("command"))?, inner),
        command => (command, entry),
    };
    let mut words = words(command);
    words.extend(owner.get("args").map(self::words).unwrap_or_default());
    let env = texts(owner, &["env", "environment"]);
    let cwd = owner.get("cwd").and_then(Value::as_str).map(str::to_owned);
    let env_file = entry.get("envFile").and_then(Value::as_str).map(str::to_owned);
    (!words.is_empty()).then_some(Place::Command { words, env, env_file, cwd })
}

/// Returns a word, or the words of a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word.clone()],
        Value::Array(words) => words.iter().filter_map(text).collect(),
        _ => Vec::new(),
    }
}

/// Returns a text, or a number or a truth value as one.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn texts(entry: &Map<String, Value>, keys: &[&str]) -> BTreeMap<String, String> {
    let objects = keys.iter().filter_map(|key| entry.get(*key)?.as_object()).flatten();
    objects.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

/// Returns the entry of a server. `values` has the variables of secrets so far, with the secrets.
fn entry(name: String, place: &Place, values: &mut BTreeMap<String, String>) -> GatewayEntry {
    let mut secrets = Vec::new();
    let mut text = format!("[server.{name}]\n");
    let line = match place {
        Place::Command { words, .. } => {
            let words: Vec<toml::Value> = words.iter().cloned().map(toml::Value::String).collect();
            format!("command = {}\n", toml::Value::Array(words))
        }
        Place::Url { url, .. } => format!("url = {}\n", quoted(url)),
    };
    text.push_str(&line);
    if let Place::Command { env_file, cwd, .. } = place {
        for (key, value) in [("cwd", cwd), ("env_file", env_file)] {
            if let Some(value) = value {
                text.push_str(&format!("{key} = {}\n", quoted(value)));
            }
        }
    }
    let (key, pairs) = match place {
        Place::Command { env, .. } => ("env", env),
        Place::Url { headers, .. } => ("headers", headers),
    };
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(field, value)| {
            let value = if is_secret(field, value) {
                let variable = match place {
                    // Another server's may have another value.
                    Place::Command { .. }
                        if values.get(field).is_none_or(|known| known == value) =>
                    {
                        field.clone()
                    }
                    _ => variable_name(&name, field),
                };
                values.insert(variable.clone(), value.clone());
                secrets.push(variable.clone());
                format!("env:{variable}")
            } else {
                value.clone()
            };
            format!("{} = {}", quoted(field), quoted(&value))
        })
        .collect();
    if !pairs.is_empty() {
        text.push_str(&format!("{key} = {{ {} }}\n", pairs.join(", ")));
    }
    GatewayEntry { name, text, secrets }
}

/// Returns true for a secret that stands in the file itself, beside references or without.
fn is_secret(field: &str, value: &str) -> bool {
    let field = field.to_ascii_uppercase();
    let written = literal(value).trim().to_ascii_lowercase();
    let is_reference = SCHEMES.contains(&written.as_str());
    !is_reference && SECRET.iter().any(|part| field.contains(part))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(own: &[String]) -> Surroundings<'_> {
        let path = Path::new;
        Surroundings {
            file: path("/home/a/f"),
            home: path("/home/a"),
            project: path("/work"),
            own,
            is_set: |name| name != "UNSET",
        }
    }

    fn found(host: Host, text: &str) -> HostFile {
        read(host, text, around(&[])).expect("servers")
    }

    fn names(host: Host, text: &str) -> Vec<(String, Place)> {
        let servers = found(host, text).servers;
        servers.into_iter().map(|server| (server.name, server.place)).collect()
    }

    fn server(name: &str, place: Place) -> FoundServer {
        FoundServer { name: name.to_owned(), place, project: None, asked: Vec::new() }
    }

    fn command(words: &[&str], env: &[(&str, &str)]) -> Place {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Place::Command { words, env, env_file: None, cwd: None }
    }

    #[test]
    fn each_host_is_read_in_its_own_form() {
        let git = command(&["uvx", "mcp-git"], &[("A", "1")]);
        let plain =
            r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-git"], "env": {"A": 1}}}}"#;
        for host in [Host::ClaudeCode, Host::ClaudeDesktop, Host::Cursor, Host::GeminiCli] {
            assert_eq!(names(host, plain), [("git".to_owned(), git.clone())], "{host:?}");
        }
        for (host, text) in [
            (
                Host::Vscode,
                r#"{ // mine
                "servers": {"git": {"type": "stdio", "command": "uvx", "args": ["mcp-git",], "env": {"A": "1"}}}}"#,
            ),
            (
                Host::Opencode,
                r#"{"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-git"], "environment": {"A": "1"}}}}"#,
            ),
            (
                Host::Zed,
                r#"{"context_servers": {"git": {"command": {"path": "uvx", "args": ["mcp-git"], "env": {"A": "1"}}}}}"#,
            ),
            (
                Host::Codex,
                "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-git\"]\nenv = { A = \"1\" }\n",
            ),
            (
                Host::ClaudeCode,
                r#"{"projects": {"/work": {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-git"], "env": {"A": "1"}}}}}}"#,
            ),
        ] {
            assert_eq!(names(host, text), [("git".to_owned(), git.clone())], "{host:?}");
        }
    }

    #[test]
    fn commands_keep_their_folder() {
        let text = "[mcp_servers.git]\ncommand = \"uvx\"\ncwd = \"/srv/git\"\n";
        let found = found(Host::Codex, text).servers;
        let [entry] = &entries(&found, &[])[..] else { panic!("an entry") };
        assert!(entry.text.contains("\ncwd = \"/srv/git\"\n"), "{}", entry.text);
    }

    #[test]
    fn urls_keep_their_headers() {
        let found = names(
            Host::GeminiCli,
            r#"{"mcpServers": {"n": {"httpUrl": "https://n/mcp", "headers": {"X": "y"}}}}"#,
        );
        let headers = BTreeMap::from([("X".to_owned(), "y".to_owned())]);
        assert_eq!(found[0].1, Place::Url { url: "https://n/mcp".to_owned(), headers });
        let found = names(
            Host::Codex,
            "[mcp_servers.n]\nurl = \"https://n\"\nbearer_token_env_var = \"T\"\n",
        );
        let Place::Url { headers, .. } = &found[0].1 else { panic!("a URL") };
        assert_eq!(headers["Authorization"], "Bearer ${T}");
    }

    #[test]
    fn the_gateway_and_what_is_off_are_left_out() {
        let text = r#"{"mcpServers": {
            "tg": {"type": "http", "url": "http://127.0.0.1:7080/mcp?limit=60KiB"},
            "tg2": {"command": "/usr/bin/toolgate", "args": ["gateway", "--stdio"]},
            "off": {"command": "x", "disabled": true}, "odd": 7}}"#;
        let HostFile { servers, remarks } = found(Host::ClaudeCode, text);
        assert!(servers.is_empty());
        for told in [
            "`tg` is this gateway",
            "`tg2` is this gateway",
            "`off` is turned off",
            "`odd` has neither a command nor a URL",
        ] {
            assert!(remarks.iter().any(|remark| remark.starts_with(told)), "{told}: {remarks:?}");
        }
        assert_eq!(remarks.len(), 4, "{remarks:?}");
        let text = r#"{"mcpServers": {"hub": {"url": "https://gw.example/mcp"}}}"#;
        let own = ["https://gw.example".to_owned()];
        let read = read(Host::Cursor, text, around(&own)).expect("servers");
        assert!(read.servers.is_empty() && read.remarks[0].contains("`hub`"), "{read:?}");
    }

    #[test]
    fn references_come_in_the_gateways_syntax() {
        let text = r#"{"inputs": [{"id": "tok", "description": "GitHub token"}],
            "servers": {"hub": {"command": "npx", "args": ["--at=${workspaceFolder}", "${input:tok}"],
            "env": {"GITHUB_TOKEN": "${env:GH}", "API_KEY": "${input:tok}"}}}}"#;
        let servers = found(Host::Vscode, text).servers;
        let env = [("API_KEY", "${API_KEY}"), ("GITHUB_TOKEN", "${GH}")];
        assert_eq!(servers[0].place, command(&["npx", "--at=/work", "${HUB_TOK}"], &env));
        let asked = |variable: &str| AskedValue {
            variable: variable.to_owned(),
            meaning: "${input:tok} of the host: GitHub token".to_owned(),
        };
        assert_eq!(servers[0].asked, ["HUB_TOK", "API_KEY"].map(asked));
        let [entry] = &entries(&servers, &[])[..] else { panic!("an entry") };
        assert!(entry.secrets.is_empty(), "{entry:?}");
        let text = "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"A\", { name = \"B\" }]\nenv = { C = \"${D}\" }\n";
        let env = [("A", "env:A"), ("B", "env:B"), ("C", "$${D}")];
        assert_eq!(names(Host::Codex, text)[0].1, command(&["x"], &env));
        let text = r#"{"mcp": {"o": {"url": "https://o", "headers": {"Authorization": "Bearer {env:OTOK}"}}}}"#;
        let read = found(Host::Opencode, text).servers;
        let [entry] = &entries(&read, &[])[..] else { panic!("an entry") };
        assert!(entry.text.contains("Bearer ${OTOK}") && entry.secrets.is_empty(), "{entry:?}");
    }

    #[test]
    fn files_of_variables_are_named_and_not_copied() {
        let file = |host, key: &str, named: &str| {
            let servers =
                serde_json::json!({"hub": {"command": "npx", "args": [8080], "envFile": named}});
            let read = found(host, &serde_json::json!({ key: servers }).to_string());
            let [entry] = &entries(&read.servers, &[])[..] else { panic!("an entry") };
            (entry.text.clone(), read.remarks)
        };
        for (named, path) in [
            (".env", "/work/.env"),
            ("${workspaceFolder}/.env", "/work/.env"),
            ("~/.env", "/home/a/.env"),
            ("/etc/hub.env", "/etc/hub.env"),
            ("${env:ENVS}/hub", "${ENVS}/hub"),
        ] {
            let wanted =
                format!("[server.hub]\ncommand = [\"npx\", \"8080\"]\nenv_file = \"{path}\"\n");
            for (host, key) in [(Host::Vscode, "servers"), (Host::Cursor, "mcpServers")] {
                assert_eq!(file(host, key, named), (wanted.clone(), Vec::new()), "{named}");
            }
        }
        let (text, remarks) = file(Host::ClaudeCode, "mcpServers", ".env");
        assert!(!text.contains("env_file"), "{text}");
        assert_eq!(remarks, ["`hub.envFile` is not carried over"]);
    }

    #[test]
    fn variables_that_codex_passes_on_override_nothing_and_are_written_if_set() {
        let text = "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"A\", \"B\", \"UNSET\"]\nenv = { A = \"1\" }\n";
        let HostFile { servers, remarks } = found(Host::Codex, text);
        assert_eq!(servers[0].place, command(&["x"], &[("A", "1"), ("B", "env:B")]));
        let [remark] = &remarks[..] else { panic!("a remark: {remarks:?}") };
        assert!(remark.contains("`a.env_vars`: UNSET is not set here"), "{remark}");
        let both = text.replace("A = \"1\"", "UNSET = \"1\"");
        assert!(found(Host::Codex, &both).remarks.is_empty());
    }

    #[test]
    fn secrets_beside_references_are_not_copied() {
        for value in ["ghp_abc${X}", "${X:-ghp_abc}", "Bearer ghp_abc", "env:ghp_abc"] {
            let text = serde_json::json!({"mcpServers": {"n": {"command": "x", "env": {"A_TOKEN": value}}}});
            let read = found(Host::ClaudeCode, &text.to_string()).servers;
            let [entry] = &entries(&read, &[])[..] else { panic!("an entry") };
            assert!(!entry.text.contains("ghp_abc"), "{value}: {}", entry.text);
            assert_eq!(entry.secrets, ["A_TOKEN"], "{value}");
        }
    }

    #[test]
    fn different_secrets_have_different_variables() {
        let hub = |name: &str, token: &str| server(name, command(&[name], &[("TOKEN", token)]));
        let servers = [hub("a", "1"), hub("b", "2"), hub("c", "1")];
        let secrets: Vec<String> =
            entries(&servers, &[]).into_iter().flat_map(|entry| entry.secrets).collect();
        assert_eq!(secrets, ["TOKEN", "B_TOKEN", "TOKEN"]);
    }

    #[test]
    fn servers_of_all_projects_are_read() {
        let text = r#"{"projects": {
            "/work": {"mcpServers": {"a": {"command": "npx"}}},
            "/other": {"mcpServers": {"b": {"command": "node", "args": ["./s.js"]}, "c": {"command": "npx"}}}}}"#;
        let servers = found(Host::ClaudeCode, text).servers;
        let place = |server: &FoundServer| match &server.place {
            Place::Command { cwd, .. } => (server.project.clone(), cwd.clone()),
            Place::Url { .. } => (server.project.clone(), None),
        };
        let places: BTreeMap<&str, (Option<String>, Option<String>)> =
            servers.iter().map(|server| (server.name.as_str(), place(server))).collect();
        let other = Some("/other".to_owned());
        assert_eq!(places["a"], (Some("/work".to_owned()), None));
        assert_eq!(places["b"], (other.clone(), other.clone()));
        assert_eq!(places["c"], (other, None));
        // The same command is one server.
        assert_eq!(entries(&servers, &[]).len(), 2);
    }

    #[test]
    fn each_host_has_files_of_the_user_and_of_the_project() {
        let has = |host: Host, file: &str| {
            let files = files(host, Path::new("/home/a"), Path::new("/work"));
            assert!(files.contains(&PathBuf::from(file)), "{host:?}: {file} not in {files:?}");
        };
        has(Host::Cursor, "/work/.cursor/mcp.json");
        has(Host::Codex, "/work/.codex/config.toml");
        has(Host::GeminiCli, "/work/.gemini/settings.json");
        has(Host::Opencode, "/home/a/.config/opencode/opencode.jsonc");
        has(Host::Opencode, "/work/opencode.jsonc");
        has(Host::Zed, "/work/.zed/settings.json");
        if !cfg!(target_os = "macos") {
            has(Host::Vscode, "/home/a/.config/Code/User/mcp.json");
        }
    }

    #[test]
    fn secrets_are_not_copied() {
        let env = [("GITHUB_TOKEN", "ghp_abc"), ("REGION", "eu"), ("API_KEY", "${MY_KEY}")];
        let servers = [server("hub", command(&["x"], &env))];
        let [entry] = &entries(&servers, &[])[..] else { panic!("an entry") };
        assert!(!entry.text.contains("ghp_abc"), "{}", entry.text);
        assert!(entry.text.contains("\"GITHUB_TOKEN\" = \"env:GITHUB_TOKEN\""), "{}", entry.text);
        assert!(entry.text.contains("${MY_KEY}") && entry.text.contains("\"eu\""));
        assert_eq!(entry.secrets, ["GITHUB_TOKEN"]);
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer abc".to_owned())]);
        let place = Place::Url { url: "https://n".into(), headers };
        let [entry] = &entries(&[server("my notes", place)], &[])[..] else { panic!("an entry") };
        assert_eq!(entry.name, "my-notes");
        assert_eq!(entry.secrets, ["MY_NOTES_AUTHORIZATION"]);
        assert!(toml::from_str::<toml::Table>(&entry.text).is_ok(), "{}", entry.text);
    }

    #[test]
    fn the_same_server_has_one_entry_and_others_have_names_of_their_own() {
        let server = |name: &str, word: &str| server(name, command(&[word], &[]));
        let found = [server("a", "x"), server("b", "x"), server("a", "y"), server("c__d", "z")];
        let names: Vec<String> =
            entries(&found, &["a".to_owned()]).into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a-2", "a-3", "c_d"]);
    }

    #[test]
    fn broken_files_are_told_with_their_line() {
        let told = read(Host::Cursor, "{\n  \"mcpServers\": }", around(&[])).expect_err("no JSON");
        assert!(told.to_string().contains("line 2"), "{told}");
        let told = read(Host::Codex, "a = 1\nb = ", around(&[])).expect_err("no TOML");
        assert!(told.to_string().contains("line 2"), "{told}");
    }
}
