//! A file with an MCP server's `tools/list`. Its shape and the server's name are detected, and its bytes stay
//! unchanged. The server checks the tools.

use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{as_text, read_text, unreadable};
use crate::cli::failure::Failure;

/// A file that is ready to be sent.
#[derive(Debug)]
pub(in crate::cli) struct ToolsListFile {
    /// Content of the file, unchanged.
    pub(in crate::cli) text: String,
    /// Name of the MCP server, from the content or else from the file name.
    pub(in crate::cli) server: String,
    /// Description of the MCP server in the file; may be empty.
    pub(in crate::cli) description: String,
    /// True if the file is only the first page of a listing.
    pub(in crate::cli) is_cut: bool,
}

/// Keys of a file that holds a JSON object.
#[derive(Deserialize)]
struct Top<'a> {
    name: Option<Value>,
    description: Option<Value>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<Value>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    /// Key that marks the configuration of an MCP client.
    #[serde(rename = "mcpServers")]
    configured: Option<IgnoredAny>,
    error: Option<Map<String, Value>>,
}

impl ToolsListFile {
    /// Reads a file: an MCP result, a JSON-RPC response, a bare array, or any of them with a `name`.
    pub(in crate::cli) fn read(path: &Path) -> Result<Self, Failure> {
        Self::parse(path, read_text(path)?)
    }

    /// Reads a listing from standard input, which has no file name to name the MCP server.
    pub(in crate::cli) fn read_standard_input() -> Result<Self, Failure> {
        let path = Path::new(STANDARD_INPUT);
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            let nothing = "nothing was in it: did the command before it fail?";
            return Err(Failure::new(format!("{STANDARD_INPUT}: {nothing}")));
        }
        let mut file = Self::parse(path, as_text(path, bytes)?)?;
        if file.server == name_of(path) {
            file.server.clear();
        }
        Ok(file)
    }

    fn parse(path: &Path, text: String) -> Result<Self, Failure> {
        let failure = |problem: &str| Failure::new(format!("{}: {problem}", path.display()));
        let not_json = |error: serde_json::Error| failure(&format!("not JSON: {error}"));
        let body = text.trim_start_matches('\u{feff}').trim();
        let whole: &RawValue = serde_json::from_str(body).map_err(not_json)?;
        let mut file = Self {
            text: String::new(),
            server: name_of(path),
            description: String::new(),
            is_cut: false,
        };
        if whole.get().starts_with('{') {
            let top: Top<'_> = serde_json::from_str(body).map_err(not_json)?;
            file.take(&top).map_err(|problem| failure(&problem))?;
        } else if !whole.get().starts_with('[') {
            return Err(failure(EXPECTED));
        }
        file.text = if body.len() == text.len() { text } else { body.to_owned() };
        Ok(file)
    }

    fn take(&mut self, top: &Top<'_>) -> Result<(), String> {
        if let Some(error) = &top.error {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
            return Err(format!("it holds a JSON-RPC error, not tools: {message}"));
        }
        if top.configured.is_some() {
            return Err(CONFIGURATION.into());
        }
        let result: Option<Top<'_>> = match (&top.tools, &top.result) {
            (Some(_), _) => None,
            (None, Some(result)) => {
                Some(serde_json::from_str(result.get()).map_err(|_| EXPECTED.to_owned())?)
            }
            (None, None) => return Err(EXPECTED.into()),
        };
        let listing = result.as_ref().unwrap_or(top);
        if !listing.tools.is_some_and(|tools| tools.get().starts_with('[')) {
            return Err(EXPECTED.into());
        }
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        self.server = text(&top.name).unwrap_or_else(|| std::mem::take(&mut self.server));
        self.description = text(&top.description).unwrap_or_default();
        self.is_cut = text(&listing.next_cursor).is_some_and(|cursor| !cursor.is_empty());
        Ok(())
    }
}

/// Text that stands for standard input in place of a file's path.
pub(in crate::cli) const STANDARD_INPUT: &str = "standard input";

const CONFIGURATION: &str = "it is the configuration of an MCP client, which says how servers are started: \
                             register what each of them answers to tools/list";

const EXPECTED: &str = "no tools found: expected the answer of MCP's tools/list, which is {\"tools\": [...]}, \
                        the JSON-RPC response around it, or the bare array";

/// Derives a valid name of an MCP server from a file name.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    // Pairs of underscores are avoided, because they separate server and tool in the names that models see.
    let words = stem.split(|letter| !allowed(letter)).filter(|word| !word.is_empty());
    let separator = if stem.contains('_') { "_" } else { "-" };
    words.collect::<Vec<_>>().join(separator).chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<ToolsListFile, String> {
        let parsed = ToolsListFile::parse(Path::new(name), text.to_owned());
        parsed.map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn every_shape_is_taken_as_it_is() {
        for (text, server) in [
            (r#"[{"name": "t"}]"#, "dir-file"),
            (r#"{"tools": []}"#, "dir-file"),
            (r#"{"name": "git", "serverInfo": {"name": "x"}, "tools": [ ]}"#, "git"),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}"#, "dir-file"),
            (r#"{"name": "git", "result": {"tools": []}}"#, "git"),
        ] {
            let file = parse("a/dir file.json", text).expect(text);
            assert_eq!((file.text.as_str(), file.server.as_str()), (text, server));
            assert!(!file.is_cut);
        }
        let file = parse(
            "x.json",
            "\u{feff}{\"tools\": [], \"description\": \"d\", \"nextCursor\": \"2\"}\n",
        );
        let file = file.expect("a first page with a byte order mark");
        assert!(file.is_cut && file.text.starts_with('{') && file.description == "d");
    }

    #[test]
    fn other_files_are_refused_with_what_would_be_right() {
        for (text, part) in [
            ("", "not JSON"),
            ("{\"tools\": [", "line 1 column"),
            ("{\"tools\": []} x", "not JSON"),
            ("3", "{\"tools\": [...]}"),
            ("{}", "no tools found"),
            ("{\"tools\": {}}", "no tools found"),
            ("{\"result\": []}", "no tools found"),
            ("{\"result\": {\"resources\": []}}", "no tools found"),
            (
                "{\"error\": {\"code\": -1, \"message\": \"nope\"}}",
                "JSON-RPC error, not tools: nope",
            ),
        ] {
            let problem = parse("f.json", text).expect_err(text);
            assert!(problem.starts_with("f.json: ") && problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn file_names_become_server_names() {
        for (path, want) in [
            ("git.json", "git"),
            ("/x/my server (1).json", "my-server-1"),
            ("a__b.json", "a_b"),
            ("_x_.json", "x"),
            ("été.json", "t"),
        ] {
            assert_eq!(name_of(Path::new(path)), want);
        }
    }
}
