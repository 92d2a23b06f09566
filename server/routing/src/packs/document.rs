//! Pack file: YAML with the names of the MCP servers it is for and, by tool and voice, example requests. docs/packs.md
//! describes the format.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::lines::Lines;

/// Maximum bytes of a pack.
const PACK_MAX: usize = 4 << 20;

/// Maximum requests of one tool.
pub const REQUESTS_MAX: usize = 64;

/// Maximum bytes of one request.
pub const REQUEST_MAX: usize = 600;

/// Styles in which requests are written. Any other voice is a language, by its ISO 639-1 code.
pub const VOICES: [&str; 5] = ["terse", "chatty", "indirect", "long", "multi_step"];

/// Key of requests that look as if they were for the tool but are not. They are meant for reviewers of a pack.
pub const NOT: &str = "not";

/// Requests for the tools of an MCP server.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Names under which the server is usually registered.
    pub servers: Vec<String>,
    /// Tools by MCP name.
    pub tools: BTreeMap<String, PackedTool>,
}

/// Example requests for one tool.
#[derive(Debug, Clone)]
pub struct PackedTool {
    /// Requests by voice, without those under [`NOT`].
    pub voices: BTreeMap<String, Vec<String>>,
    /// Requests that look as if they were for the tool but are not.
    pub not: Vec<String>,
    /// All requests in the form that the indexes use.
    pub lines: std::sync::Arc<Lines>,
}

/// Mistake in a pack, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Name of the tool, or an empty string for the whole pack.
    pub tool: String,
    /// Explanation of the mistake and of the expected input.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    servers: Vec<String>,
    tools: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Pack {
    /// Parses a pack.
    ///
    /// # Errors
    /// All mistakes in the pack.
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

    /// Returns the number of requests in the pack.
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

/// Returns true if `name` has the form of a language code: two lowercase letters.
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
