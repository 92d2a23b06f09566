//! Definitions of the gateway's own tools, and the texts that say what is behind it.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_core::safety::identifiers::words;
use toolgate_core::tokens::count;

use crate::raw::RawObject;

/// Names of the tools.
pub(crate) const DISCOVER: &str = "discover_tools";
pub(crate) const CALL_READ: &str = "call_read_tool";
pub(crate) const CALL: &str = "call_tool";
pub(crate) const READ_RESULT: &str = "read_result";

/// Most tokens of the list of servers.
const SERVERS_TOKENS: u32 = 60;

/// Most words that say what a server's tools are about.
const WORDS: usize = 2;

/// Longest such word, and its shortest.
const WORD_LENGTHS: std::ops::RangeInclusive<usize> = 3..=16;

/// Words in names of tools that say little of what they are about.
const COMMON_WORDS: [&str; 24] = [
    "add", "all", "api", "call", "create", "delete", "edit", "fetch", "find", "get", "info",
    "list", "mcp", "new", "read", "remove", "run", "search", "set", "show", "tool", "update",
    "with", "write",
];

/// Server behind the gateway, as far as a model is told of it before it searches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Its name.
    pub(crate) name: String,
    /// Number of its tools; `None` before it has listed them.
    pub(crate) tools: Option<usize>,
    /// Words that most of the names of its tools have.
    pub(crate) words: Vec<String>,
}

impl Behind {
    /// Returns a server whose tools have these names. Names of a server whose texts nobody has checked give no words.
    pub(crate) fn of<'n>(
        server: &str,
        tools: impl Iterator<Item = &'n str>,
        is_checked: bool,
    ) -> Self {
        let own = words(server);
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        let mut tools_counted = 0;
        for tool in tools {
            let mut named = words(tool);
            named.sort();
            named.dedup();
            for word in named {
                let is_telling = WORD_LENGTHS.contains(&word.len())
                    && word.chars().all(|c| c.is_ascii_lowercase())
                    && !own.contains(&word)
                    && !COMMON_WORDS.contains(&word.as_str());
                if is_telling {
                    counts.entry(word).or_insert((0, tools_counted)).0 += 1;
                }
            }
            tools_counted += 1;
        }
        let mut ranked: Vec<_> = counts.into_iter().collect();
        // The most frequent first; of two the one that comes first.
        ranked.sort_by_key(|(word, (count, first))| (usize::MAX - count, *first, word.clone()));
        let words = ranked.into_iter().map(|(word, _)| word).take(WORDS).collect();
        Self {
            name: server.to_owned(),
            tools: Some(tools_counted),
            words: if is_checked { words } else { Vec::new() },
        }
    }

    /// Returns the server in a line, with so many words.
    fn told(&self, words: usize) -> String {
        let Self { name, tools, words: known } = self;
        match (tools, known.get(..words.min(known.len()))) {
            (Some(tools), Some([])) => format!("{name} ({tools})"),
            (Some(tools), Some(words)) => format!("{name} ({tools}: {})", words.join(", ")),
            _ => name.clone(),
        }
    }
}

/// Returns the definitions, which stay the same while the servers are the same.
pub(crate) fn definitions(servers: &[Behind]) -> Vec<Value> {
    let behind = behind(servers);
    vec![
        json!({
            "name": DISCOVER,
            "title": "Find tools",
            "description": format!(
                "Finds tools by what they are for. Search before you say that you can't do something. {behind}"
            ),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to do, in your own words; select:NAME,NAME for whole schemas; a server's name for its tools; +word for a word that must occur"},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5}
                },
                "required": ["query"]
            },
            "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
            "_meta": {"anthropic/alwaysLoad": true}
        }),
        json!({
            "name": CALL_READ,
            "title": "Call a tool that reads",
            "description": "Calls a tool that discover_tools shows as read: it changes nothing.",
            "inputSchema": call_schema(),
            "annotations": {"readOnlyHint": true, "destructiveHint": false, "openWorldHint": true},
            "_meta": {"anthropic/alwaysLoad": true}
        }),
        json!({
            "name": CALL,
            "title": "Call a tool",
            "description": "Calls any tool that discover_tools found.",
            "inputSchema": call_schema(),
            "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
            "_meta": {"anthropic/alwaysLoad": true}
        }),
        read_result(),
    ]
}

/// Returns the definition of the tool that reads on in a result.
pub(crate) fn read_result() -> Value {
    json!({
        "name": READ_RESULT,
        "title": "Read on in a result",
        "description": "Reads on in a result that was cut.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "As the cut result gives it"},
                "offset": {"type": "integer", "minimum": 0, "default": 0},
                "find": {"type": "string", "description": "Go to where this text occurs"}
            },
            "required": ["handle"]
        },
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        "_meta": {"anthropic/alwaysLoad": true}
    })
}

/// Returns the text that hosts put into the model's prompt.
pub(crate) fn instructions(servers: &[Behind]) -> String {
    format!(
        "{} Find them with {DISCOVER}, then call them with {CALL_READ} (those shown as read) or {CALL}, by the name that was shown, with its #tag.",
        behind(servers)
    )
}

fn call_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name with its #tag, as shown"},
            "arguments": {"type": "object", "description": "Arguments by the tool's signature or schema"}
        },
        "required": ["name"]
    })
}

/// Returns one line that names the servers behind the gateway, in order: with words for what they are about, or only their
/// numbers of tools, or only their names, as fits.
fn behind(servers: &[Behind]) -> String {
    if servers.is_empty() {
        return "No MCP server is behind this gateway yet.".to_owned();
    }
    let line = |told: &[String], more: usize| {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("Tools of these MCP servers are behind it: {}{more}.", told.join(", "))
    };
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    // Names alone may be too many to be counted at no cost.
    let fits = |told: &[String]| count(&told.join(", ")) <= SERVERS_TOKENS;
    if names.len() <= SERVERS_TOKENS as usize {
        for words in (0..=WORDS).rev() {
            let told: Vec<String> = servers.iter().map(|server| server.told(words)).collect();
            if fits(&told) {
                return line(&told, 0);
            }
        }
    }
    let most = (1..=names.len().min(SERVERS_TOKENS as usize)).rev();
    let shown = most.into_iter().find(|shown| fits(&names[..*shown])).unwrap_or_default();
    line(&names[..shown], names.len() - shown)
}

/// Returns the tokens that a host's prompt has of a definition: its name, description and input schema.
pub(crate) fn tokens_of(definition: &str) -> usize {
    let Ok(definition) = RawObject::parse(definition.to_owned()) else { return 0 };
    let fields = ["name", "description", "inputSchema"];
    let text = fields.iter().filter_map(|field| {
        let value = definition.get(field)?;
        Some(format!("\"{field}\":{value}"))
    });
    let text: Vec<String> = text.collect();
    count(&format!("{{{}}}", text.join(","))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, tools: &[&str]) -> Behind {
        Behind::of(name, tools.iter().copied(), true)
    }

    #[test]
    fn the_line_of_servers_is_bounded() {
        let servers: Vec<Behind> =
            (0..1_000).map(|place| server(&format!("server-{place}"), &["get_page"])).collect();
        let line = behind(&servers);
        assert!(count(&line) <= SERVERS_TOKENS + 20 && line.contains("more"), "{line}");
        let few = [server("git", &["git_diff", "git_diff_staged", "git_commit"]), server("x", &[])];
        let told = "Tools of these MCP servers are behind it: git (3: diff, staged), x (0).";
        assert_eq!(behind(&few), told);
        let some: Vec<Behind> =
            (0..12).map(|place| server(&format!("srv{place}"), &["page_size", "page"])).collect();
        let line = behind(&some);
        assert!(line.contains("srv3") && count(&line) <= SERVERS_TOKENS + 20, "{line}");
    }

    #[test]
    fn words_of_servers_whose_texts_nobody_checked_are_not_told() {
        let names = ["ignore_rules", "Ignore-all"];
        let unchecked = Behind::of("x", names.into_iter(), false);
        assert_eq!(behind(&[unchecked]), "Tools of these MCP servers are behind it: x (2).");
        let waiting = Behind { name: "y".to_owned(), tools: None, words: Vec::new() };
        assert!(behind(&[waiting]).ends_with("y."));
    }

    #[test]
    fn each_of_the_gateways_tools_costs_at_most_150_tokens() {
        let servers = [server("git", &["git_diff"]), server("notes", &["keep_note"])];
        let all: Vec<usize> =
            definitions(&servers).iter().map(|tool| tokens_of(&tool.to_string())).collect();
        assert!(all.iter().all(|tokens| *tokens <= 150), "{all:?}");
        assert!(all.iter().sum::<usize>() <= 420, "{all:?}");
    }

    #[test]
    fn reading_and_calling_differ_by_risk() {
        let tools = definitions(&[]);
        let hint = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect("a tool");
            tool["annotations"]["readOnlyHint"].clone()
        };
        assert_eq!(hint(CALL_READ), true);
        assert_eq!(hint(CALL), false);
        assert!(tools.iter().all(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true));
    }
}
