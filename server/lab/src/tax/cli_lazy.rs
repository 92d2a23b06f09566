//! CLI lazy discovery: the tools are behind one command, and the model runs its `list` and `help` when needed. The
//! model is assumed to run each of them once in a conversation and to choose the right tool at once, which is the best
//! case. The output of the command stays in the history.

use std::collections::HashSet;

use serde_json::Value;

use super::bed::Bed;
use crate::conversations::Piece;
use toolgate_core::tokens;
use toolgate_routing::shard::tool::Tool;

/// Part of the prompt that describes the command.
const PROMPT: &str = "\
You have no tools but the shell command `mcp`. It reaches MCP servers:

  mcp list                      the servers
  mcp list SERVER               the tools of a server, one a line
  mcp help SERVER TOOL          what a tool does and which parameters it takes
  mcp call SERVER TOOL JSON     call a tool with a JSON object of arguments

Look before you call: list the server that fits the task, read the help of the tool that you want to use, then \
call it with every required parameter. Each call prints the tool's result, or an error that says what was \
wrong. Never guess the name of a tool or of a parameter. Servers:
";

/// Output sizes of the command, in tokens.
#[derive(Debug)]
pub(super) struct CommandLine {
    prompt: u32,
    /// For each slot: the index of its server, the tokens of the server's list, and the tokens of its own help.
    tools: Vec<(usize, u32, u32)>,
}

/// Output of the command that a conversation has already seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    servers: HashSet<usize>,
    tools: HashSet<u32>,
    tokens: u64,
}

impl CommandLine {
    /// Counts the tokens of the command's output for a catalog.
    pub(super) fn new(bed: &Bed<'_>) -> Self {
        let snapshot = &bed.snapshot;
        let servers: Vec<&str> = snapshot.servers.keys().map(|name| name.as_str()).collect();
        let mut tools = vec![(0, 0, 0); snapshot.tools.len()];
        for (place, slots) in snapshot.servers.values().enumerate() {
            let names = slots.iter().map(|slot| snapshot.tool(*slot).id.name.as_str());
            let list = tokens::count(&names.collect::<Vec<_>>().join("\n"));
            for slot in slots {
                let help = tokens::count(&help(snapshot.tool(*slot)));
                tools[*slot as usize] = (place, list, help);
            }
        }
        let prompt = tokens::count(&format!("{PROMPT}{}", servers.join(", ")));
        Self { prompt, tools }
    }

    /// Returns the tokens of the prompt.
    pub(super) fn prompt(&self) -> u32 {
        self.prompt
    }
}

impl Seen {
    /// Looks up the tools that a turn needs. Returns what the command prints, one piece a run.
    pub(super) fn look(&mut self, line: &CommandLine, slots: &[u32]) -> Vec<Piece> {
        let mut printed = Vec::new();
        for slot in slots {
            let (server, list, help) = line.tools[*slot as usize];
            if self.servers.insert(server) {
                printed.push(Piece::new(&format!("list {server}"), list));
            }
            if self.tools.insert(*slot) {
                printed.push(Piece::new(&format!("help {slot}"), help));
            }
        }
        self.tokens += printed.iter().map(|piece| u64::from(piece.tokens)).sum::<u64>();
        printed
    }

    /// Returns the tokens of the command's output in the history.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the number of tools whose help was read.
    pub(super) fn tools(&self) -> usize {
        self.tools.len()
    }
}

/// Returns the output of `mcp help` for a tool.
fn help(tool: &Tool) -> String {
    let schema: Value = serde_json::from_str(tool.definition.input_schema()).unwrap_or_default();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = format!("{}\n\n{}\n", tool.id.name.as_str(), tool.definition.description());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property["type"].as_str().unwrap_or("any");
        let mark = if required.contains(&name.as_str()) { " (required)" } else { "" };
        let says = property["description"].as_str().unwrap_or_default();
        text.push_str(&format!("  {name} {kind}{mark}  {says}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_helps_are_paid_for_once() {
        let line = CommandLine { prompt: 100, tools: vec![(0, 10, 5), (0, 10, 7), (1, 20, 9)] };
        let mut seen = Seen::default();
        let mut look = |slots: &[u32]| {
            let printed = seen.look(&line, slots);
            (printed.iter().map(|piece| piece.tokens).collect::<Vec<_>>(), seen.tokens())
        };
        assert_eq!(look(&[0]), (vec![10, 5], 15));
        assert_eq!(look(&[0]), (vec![], 15));
        assert_eq!(look(&[1]), (vec![7], 22));
        assert_eq!(look(&[2, 1]), (vec![20, 9], 51));
        assert_eq!((seen.tools(), line.prompt()), (3, 100));
    }
}
