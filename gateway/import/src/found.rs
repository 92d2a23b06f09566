//! MCP servers in hosts' files, and their entries in a gateway's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::Host;
use crate::plain::without_comments;

/// Largest number of characters of a server's name, as the gateway takes it.
const NAME_MAX: usize = 64;

/// Parts of names of variables and headers whose values are secrets.
const SECRET: [&str; 8] =
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION", "COOKIE"];

/// MCP server in a host's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// Name in the host's file.
    pub name: String,
    /// Its place.
    pub place: Place,
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

/// Returns the servers that a host's file names, without those that are turned off and the gateway itself. `project` is the
/// folder whose servers count besides the user's.
///
/// # Errors
/// [`ReadError`] if the file is neither JSON, with comments or without, nor TOML where the host writes that.
pub fn read(host: Host, text: &str, project: &Path) -> Result<Vec<FoundServer>, ReadError> {
    let root: Value = if host == Host::Codex {
        let table: toml::Table =
            toml::from_str(text).map_err(|error| ReadError(error.to_string()))?;
        serde_json::to_value(table).map_err(|error| ReadError(error.to_string()))?
    } else {
        serde_json::from_str(&without_comments(text))
            .map_err(|error| ReadError(format!("it is no JSON: {error}")))?
    };
    let mut found = Vec::new();
    let project = project.display().to_string();
    for section in [&root[host.section()], &root["projects"][&project][host.section()]] {
        for (name, entry) in section.as_object().into_iter().flatten() {
            if let Some(place) = entry.as_object().and_then(place)
                && !is_gateway(&place)
            {
                found.push(FoundServer { name: name.clone(), place });
            }
        }
    }
    Ok(found)
}

/// Returns the files in which a host keeps servers.
#[must_use]
pub fn files(host: Host, home: &Path, project: &Path) -> Vec<PathBuf> {
    let mut files = vec![
        host.file(home, project, crate::Scope::User),
        host.file(home, project, crate::Scope::Project),
    ];
    if host == Host::Cursor {
        files.push(project.join(".cursor/mcp.json"));
    }
    files.dedup();
    files
}

/// Returns an entry of a gateway's file for each server, under names that are not among `taken`. A server that is there twice
/// has one entry.
#[must_use]
pub fn entries(servers: &[FoundServer], taken: &[String]) -> Vec<GatewayEntry> {
    let mut entries: Vec<GatewayEntry> = Vec::new();
    let mut places: Vec<&Place> = Vec::new();
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
        entries.push(entry(name, &server.place));
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

pub(crate) fn place(entry: &Map<String, Value>) -> Option<Place> {
    let is_off = entry.get("disabled") == Some(&Value::Bool(true))
        || entry.get("enabled") == Some(&Value::Bool(false));
    if is_off {
        return None;
    }
    let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(*key)?.as_str());
    if let Some(url) = url {
        let mut headers = texts(entry, &["headers", "http_headers"]);
        for (header, variable) in texts(entry, &["env_http_headers"]) {
            headers.insert(header, format!("env:{variable}"));
        }
        if let Some(variable) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
        }
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
    (!words.is_empty()).then_some(Place::Command { words, env, cwd })
}

/// Returns a word, or the words of a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word.clone()],
        Value::Array(words) => {
            words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn texts(entry: &Map<String, Value>, keys: &[&str]) -> BTreeMap<String, String> {
    let objects = keys.iter().filter_map(|key| entry.get(*key)?.as_object()).flatten();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    objects.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

pub(crate) fn is_gateway(place: &Place) -> bool {
    match place {
        Place::Url { url, .. } => url.contains(":7080/mcp"),
        Place::Command { words, .. } => {
            words.first().is_some_and(|program| program.ends_with("toolgate"))
                && words.iter().any(|word| word == "gateway")
        }
    }
}

fn entry(name: String, place: &Place) -> GatewayEntry {
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
    if let Place::Command { cwd: Some(cwd), .. } = place {
        text.push_str(&format!("cwd = {}\n", quoted(cwd)));
    }
    let (key, values) = match place {
        Place::Command { env, .. } => ("env", env),
        Place::Url { headers, .. } => ("headers", headers),
    };
    let values: Vec<String> = values
        .iter()
        .map(|(field, value)| {
            let value = if is_secret(field, value) {
                let variable = match place {
                    Place::Command { .. } => field.clone(),
                    Place::Url { .. } => variable_name(&name, field),
                };
                secrets.push(variable.clone());
                format!("env:{variable}")
            } else {
                value.clone()
            };
            format!("{} = {}", quoted(field), quoted(&value))
        })
        .collect();
    if !values.is_empty() {
        text.push_str(&format!("{key} = {{ {} }}\n", values.join(", ")));
    }
    GatewayEntry { name, text, secrets }
}

/// Returns true for a secret that stands in the file itself.
fn is_secret(field: &str, value: &str) -> bool {
    let field = field.to_ascii_uppercase();
    let is_reference =
        value.starts_with("env:") || value.starts_with("file:") || value.contains("${");
    !is_reference && !value.is_empty() && SECRET.iter().any(|part| field.contains(part))
}

fn variable_name(server: &str, header: &str) -> String {
    let name = format!("{server}_{header}").to_ascii_uppercase();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(host: Host, text: &str) -> Vec<(String, Place)> {
        let found = read(host, text, Path::new("/work")).expect("servers");
        found.into_iter().map(|server| (server.name, server.place)).collect()
    }

    fn command(words: &[&str], env: &[(&str, &str)]) -> Place {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Place::Command { words, env, cwd: None }
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
        let found = read(Host::Codex, text, Path::new("/work")).expect("servers");
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
        assert!(names(Host::ClaudeCode, text).is_empty());
    }

    #[test]
    fn secrets_are_not_copied() {
        let env = [("GITHUB_TOKEN", "ghp_abc"), ("REGION", "eu"), ("API_KEY", "${MY_KEY}")];
        let servers = [FoundServer { name: "hub".into(), place: command(&["x"], &env) }];
        let [entry] = &entries(&servers, &[])[..] else { panic!("an entry") };
        assert!(!entry.text.contains("ghp_abc"), "{}", entry.text);
        assert!(entry.text.contains("\"GITHUB_TOKEN\" = \"env:GITHUB_TOKEN\""), "{}", entry.text);
        assert!(entry.text.contains("${MY_KEY}") && entry.text.contains("\"eu\""));
        assert_eq!(entry.secrets, ["GITHUB_TOKEN"]);
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer abc".to_owned())]);
        let place = Place::Url { url: "https://n".into(), headers };
        let [entry] = &entries(&[FoundServer { name: "my notes".into(), place }], &[])[..] else {
            panic!("an entry")
        };
        assert_eq!(entry.name, "my-notes");
        assert_eq!(entry.secrets, ["MY_NOTES_AUTHORIZATION"]);
        assert!(toml::from_str::<toml::Table>(&entry.text).is_ok(), "{}", entry.text);
    }

    #[test]
    fn the_same_server_has_one_entry_and_others_have_names_of_their_own() {
        let server = |name: &str, word: &str| FoundServer {
            name: name.to_owned(),
            place: command(&[word], &[]),
        };
        let found = [server("a", "x"), server("b", "x"), server("a", "y"), server("c__d", "z")];
        let names: Vec<String> =
            entries(&found, &["a".to_owned()]).into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a-2", "a-3", "c_d"]);
    }

    #[test]
    fn broken_files_are_told_with_their_line() {
        let told =
            read(Host::Cursor, "{\n  \"mcpServers\": }", Path::new("/")).expect_err("no JSON");
        assert!(told.to_string().contains("line 2"), "{told}");
        let told = read(Host::Codex, "a = 1\nb = ", Path::new("/")).expect_err("no TOML");
        assert!(told.to_string().contains("line 2"), "{told}");
    }
}
