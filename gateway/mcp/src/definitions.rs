//! Definitions of the gateway's own tools, and the texts that say what is behind it.

use serde_json::{Value, json};

/// Names of the tools.
pub(crate) const DISCOVER: &str = "discover_tools";
pub(crate) const CALL_READ: &str = "call_read_tool";
pub(crate) const CALL: &str = "call_tool";
pub(crate) const READ_RESULT: &str = "read_result";

/// Most characters of the list of servers: some 60 tokens.
const SERVERS_MAX: usize = 240;

/// Returns the definitions, which stay the same while the servers are the same.
pub(crate) fn definitions(servers: &[String]) -> Vec<Value> {
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
        }),
    ]
}

/// Returns the text that hosts put into the model's prompt.
pub(crate) fn instructions(servers: &[String]) -> String {
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

/// Returns one line that names the servers behind the gateway, in order.
fn behind(servers: &[String]) -> String {
    if servers.is_empty() {
        return "No MCP server is behind this gateway yet.".to_owned();
    }
    let mut line = String::from("Tools of these MCP servers are behind it: ");
    let start = line.len();
    for (place, server) in servers.iter().enumerate() {
        if line.len() - start + server.len() > SERVERS_MAX {
            line.push_str(&format!(" and {} more", servers.len() - place));
            break;
        }
        if place > 0 {
            line.push_str(", ");
        }
        line.push_str(server);
    }
    line.push('.');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::tokens::count;

    #[test]
    fn the_line_of_servers_is_bounded() {
        let servers: Vec<String> = (0..1_000).map(|place| format!("server-{place}")).collect();
        let line = behind(&servers);
        assert!(line.len() < 330 && line.contains("more"), "{line}");
        assert!(behind(&["git".to_owned()]).contains("git."));
    }

    #[test]
    fn each_of_the_gateways_tools_costs_at_most_150_tokens() {
        let servers = ["git".to_owned(), "notes".to_owned()];
        let tokens = |tool: &Value| {
            let text = |key: &str| tool[key].as_str().unwrap_or_default();
            let schema = tool["inputSchema"].to_string();
            count(&format!("{}\n{}\n{schema}", text("name"), text("description")))
        };
        let all: Vec<u32> = definitions(&servers).iter().map(tokens).collect();
        assert!(all.iter().all(|tokens| *tokens <= 150), "{all:?}");
        assert!(all.iter().sum::<u32>() <= 400, "{all:?}");
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
