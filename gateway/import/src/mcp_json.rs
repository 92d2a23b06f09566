//! A host's `.mcp.json` that is read as it is: its servers, and what is not read of it.

use serde_json::{Map, Value};

use crate::address::is_gateway;
use crate::found::{gateway_name, place};
use crate::plain::without_comments;
use crate::{FoundServer, Host, Place, ReadError};

/// Keys of a server that are read.
const KEYS: [&str; 11] = [
    "type", "command", "args", "env", "envFile", "cwd", "url", "httpUrl", "headers", "disabled",
    "enabled",
];

/// Transports that `type` may name. Which it is, the server itself says.
const TYPES: [&str; 4] = ["stdio", "http", "streamable-http", "sse"];

/// Content of a host's `.mcp.json`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct McpJson {
    /// Its servers, without those that it turns off and the gateway itself, under names that the gateway takes.
    pub servers: Vec<FoundServer>,
    /// Remarks for people on what is not read, or not as it is written.
    pub remarks: Vec<String>,
}

impl McpJson {
    /// Reads the text of a file, with comments or without. Values are as the file writes them. The gateway has the base URLs `own`
    /// besides that of its defaults.
    ///
    /// # Errors
    /// [`ReadError`] if it is no JSON, has no `mcpServers`, or has a server that makes no sense.
    pub fn read(text: &str, own: &[String]) -> Result<Self, ReadError> {
        let root: Map<String, Value> = serde_json::from_str(&without_comments(text))
            .map_err(|error| ReadError::new(format!("it is no JSON object: {error}")))?;
        let section = Host::ClaudeCode.section();
        let servers = root.get(section).and_then(Value::as_object);
        let servers = servers
            .ok_or_else(|| ReadError::new(format!("it has no object `{section}` with servers")))?;
        let mut read = Self::default();
        for key in root.keys().filter(|key| *key != section) {
            read.remarks.push(format!("`{key}` is not read"));
        }
        for (name, entry) in servers {
            read.add(name, entry, own)?;
        }
        Ok(read)
    }

    fn add(&mut self, name: &str, entry: &Value, own: &[String]) -> Result<(), ReadError> {
        let wrong = |problem: &str| ReadError::new(format!("`{name}`{problem}"));
        let entry = entry.as_object().ok_or_else(|| wrong(" must be an object"))?;
        let mut known = entry.clone();
        known.retain(|key, _| KEYS.contains(&key.as_str()));
        for key in entry.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.remarks.push(format!("`{name}.{key}` is not read"));
        }
        for (key, value) in &known {
            if let Some(problem) = problem(key, value) {
                return Err(ReadError::new(format!("`{name}.{key}` {problem}")));
            }
        }
        let has_url = known.contains_key("url") || known.contains_key("httpUrl");
        if has_url == known.contains_key("command") {
            return Err(wrong(" needs either `command` or `url`"));
        }
        // One that is off is left out, as hosts leave it out.
        let Some(place) = place(&known) else { return Ok(()) };
        if has_url && known.contains_key("envFile") {
            self.remarks.push(format!("`{name}.envFile` is not read"));
        }
        if is_gateway(name, &place, own) {
            self.remarks.push(format!("`{name}` is this gateway, and is left out"));
            return Ok(());
        }
        let called = gateway_name(name);
        if self.servers.iter().any(|server| server.name == called) {
            return Err(wrong(&format!(" would be called {called}, as another is: rename one")));
        }
        if called != name {
            self.remarks.push(format!("`{name}` is called {called} here"));
        }
        self.servers.push(FoundServer { name: called, place, project: None, asked: Vec::new() });
        Ok(())
    }
}

/// Returns what a value of a server must be, if it is not.
fn problem(key: &str, value: &Value) -> Option<&'static str> {
    let is_word = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    match key {
        "args" => {
            let is_right = value.as_array().is_some_and(|words| words.iter().all(Value::is_string));
            (!is_right).then_some("must be a list of texts")
        }
        "env" | "headers" => {
            let is_right = value.as_object().is_some_and(|pairs| pairs.values().all(is_word));
            (!is_right).then_some("must be an object of texts")
        }
        "disabled" | "enabled" => (!value.is_boolean()).then_some("must be true or false"),
        "type" => {
            let is_right = value.as_str().is_some_and(|kind| TYPES.contains(&kind));
            (!is_right).then_some("must be \"stdio\", \"http\", \"streamable-http\" or \"sse\"")
        }
        _ => (!value.is_string()).then_some("must be a text"),
    }
}

impl Place {
    /// Returns the command line or the URL as the file writes it, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Command { words, .. } => words.join(" "),
            Self::Url { url, .. } => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_and_the_rest_is_told() {
        let read = McpJson::read(
            r#"{ // mine
            "inputs": [],
            "mcpServers": {
                "git": {"type": "stdio", "command": "uvx", "args": ["${A}", "env:B"], "env": {"C": 1}, "envFile": ".env"},
                "my notes": {"type": "http", "url": "https://${H:-n}/mcp", "timeout": 5, "envFile": ".env", "headers": {"X": "env:Y"}},
                "off": {"command": "x", "disabled": true},
                "tg": {"type": "http", "url": "http://127.0.0.1:7080/mcp"},
            }}"#,
            &[],
        );
        let McpJson { servers, remarks } = read.expect("servers");
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["git", "my-notes"]);
        assert_eq!(servers[0].place.shown(), "uvx ${A} env:B");
        let Place::Command { env_file, .. } = &servers[0].place else { panic!("a command") };
        assert_eq!(env_file.as_deref(), Some(".env"));
        let Place::Url { url, headers } = &servers[1].place else { panic!("a URL") };
        assert_eq!((url.as_str(), headers["X"].as_str()), ("https://${H:-n}/mcp", "env:Y"));
        let wanted = [
            "`inputs` is not read",
            "`my notes.timeout` is not read",
            "`my notes.envFile` is not read",
            "`my notes` is called my-notes here",
            "`tg` is this gateway, and is left out",
        ];
        assert_eq!(remarks, wanted);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (servers, problem) in [
            (r#"{"a": 7}"#, "`a` must be an object"),
            (r#"{"a": {}}"#, "either `command` or `url`"),
            (r#"{"a": {"command": "x", "url": "https://y"}}"#, "either `command` or `url`"),
            (r#"{"a": {"command": ["x"]}}"#, "`a.command` must be a text"),
            (r#"{"a": {"command": "x", "args": "y"}}"#, "`a.args` must be a list of texts"),
            (r#"{"a": {"command": "x", "env": {"B": {}}}}"#, "`a.env` must be an object of texts"),
            (r#"{"a": {"command": "x", "disabled": "yes"}}"#, "true or false"),
            (r#"{"a": {"type": "ws", "url": "wss://x"}}"#, "`a.type` must be"),
            (r#"{"a b": {"command": "x"}, "a-b": {"command": "y"}}"#, "rename one"),
        ] {
            let text = format!("{{\"mcpServers\": {servers}}}");
            let error = McpJson::read(&text, &[]).expect_err(servers).to_string();
            assert!(error.contains(problem), "{servers}: {error}");
        }
        for text in ["", "[]", "{}", r#"{"mcpServers": []}"#] {
            assert!(McpJson::read(text, &[]).is_err(), "{text}");
        }
    }
}
