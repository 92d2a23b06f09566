//! A pack as it is written: YAML with the names of the MCP servers that it is for and, by tool and voice, what people
//! say. docs/packs.md has the format.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::lines::Lines;

/// Bytes of a pack.
const PACK_MAX: usize = 4 << 20;

/// Requests of one tool.
pub const REQUESTS_MAX: usize = 64;

/// Bytes of one request.
pub const REQUEST_MAX: usize = 600;

/// In what manner requests are written; any other voice is a language, by its ISO 639-1 code.
pub const VOICES: [&str; 5] = ["terse", "chatty", "indirect", "long", "multi_step"];

/// Requests that look as if they were for the tool, and are not: for whoever reviews a pack.
pub const NOT: &str = "not";

/// What is known of the tools of an MCP server.
#[derive(Debug, Clone)]
pub struct Pack {
    /// What the server is called by those who register it.
    pub servers: Vec<String>,
    /// By the tool's MCP name.
    pub tools: BTreeMap<String, PackedTool>,
}

/// What people say who want a tool.
#[derive(Debug, Clone)]
pub struct PackedTool {
    /// By voice; what is under [`NOT`] is not among them.
    pub voices: BTreeMap<String, Vec<String>>,
    /// What looks like it and is not.
    pub not: Vec<String>,
    /// All requests, as the indexes take them.
    pub lines: std::sync::Arc<Lines>,
}

/// What is wrong with a pack, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The tool, or nothing.
    pub tool: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    servers: Vec<String>,
    tools: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Pack {
    /// Reads a pack.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let whole = |problem: String| vec![Mistake { tool: String::new(), problem }];
        if text.len() > PACK_MAX {
            return Err(whole(format!("has {} bytes; at most {PACK_MAX}", text.len())));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 8, max_aliases: 0, max_documents: 1 },
            with_snippet: false,
        };
        let document: Document = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| whole(error.without_snippet().to_string()))?;
        let mut mistakes = Vec::new();
        if document.servers.is_empty() {
            mistakes.extend(whole("\"servers\" is empty: name the MCP server".to_owned()));
        }
        let mut tools = BTreeMap::new();
        for (name, voices) in document.tools {
            match PackedTool::of(voices) {
                Ok(tool) => drop(tools.insert(name, tool)),
                Err(problem) => mistakes.push(Mistake { tool: name, problem }),
            }
        }
        if mistakes.is_empty() {
            Ok(Self { servers: document.servers, tools })
        } else {
            Err(mistakes)
        }
    }

    /// How many requests it has.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.tools.values().map(|tool| tool.lines.all().len()).sum()
    }
}

impl PackedTool {
    fn of(mut voices: BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        let not = voices.remove(NOT).unwrap_or_default();
        if let Some(voice) = voices.keys().find(|voice| !is_voice(voice)) {
            let known = VOICES.join(", ");
            return Err(format!(
                "{voice:?} is no voice: write one of {known}, {NOT}, or a language such as de"
            ));
        }
        let all = || voices.values().flatten().chain(&not);
        if all().any(|request| request.trim().is_empty()) {
            return Err("a request is empty".to_owned());
        }
        if let Some(long) = all().find(|request| request.len() > REQUEST_MAX) {
            let begin = &long[..long.floor_char_boundary(40)];
            return Err(format!("a request has over {REQUEST_MAX} bytes: \"{begin}...\""));
        }
        let count = voices.values().map(Vec::len).sum::<usize>();
        if count == 0 || count > REQUESTS_MAX {
            return Err(format!("{count} requests: there must be 1 to {REQUESTS_MAX}"));
        }
        let lines = Lines::new(voices.values().flatten().cloned());
        Ok(Self { voices, not, lines: std::sync::Arc::new(lines) })
    }
}

fn is_voice(name: &str) -> bool {
    is_language(name) || VOICES.contains(&name)
}

/// Whether this is written as the code of a language.
#[must_use]
pub fn is_language(name: &str) -> bool {
    name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tool.as_str() {
            "" => f.write_str(&self.problem),
            tool => write!(f, "{tool}: {}", self.problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        let mistakes = Pack::parse(text).expect_err(text);
        mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_pack_is_read() {
        let text = "servers: [git, mcp-git]\ntools:\n  log:\n    terse: [what happened lately]\n    \
                    de: [was war zuletzt los]\n    not: [undo that]\n";
        let pack = Pack::parse(text).expect("a pack");
        assert_eq!((pack.servers.len(), pack.requests()), (2, 2));
        let tool = &pack.tools["log"];
        assert_eq!(tool.not, ["undo that"]);
        assert_eq!(tool.lines.all().len(), 2);
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let tools = |tool: &str| format!("servers: [git]\ntools:\n  log: {tool}\n");
        for (text, wanted) in [
            (tools("{loud: [a b]}"), "log: \"loud\" is no voice: write one of terse"),
            (tools("{terse: ['']}"), "log: a request is empty"),
            (tools("{not: [a b]}"), "log: 0 requests: there must be 1 to 64"),
            (tools(&format!("{{terse: [{}]}}", "x".repeat(601))), "over 600 bytes: \"xxx"),
            ("servers: []\ntools: {}\n".to_owned(), "\"servers\" is empty"),
            ("tools: {}\n".to_owned(), "missing field `servers`"),
            ("servers: [a]\ntool: {}\n".to_owned(), "unknown field `tool`"),
            ("x".repeat(PACK_MAX + 1), "bytes; at most"),
        ] {
            let found = mistake(&text);
            assert!(found.contains(wanted), "{found}");
        }
    }
}
