//! Notes after a registration about texts that make tools hard to find. There is a line for each MCP server, on stderr.

use std::path::Path;

use crate::cli::documents::{STANDARD_INPUT, ToolsListFile, tools_of};
use crate::cli::output;
use crate::cli::text::counted;
use toolgate_config::LimitsConfig;
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::lint::{self, Code, Finding};

/// Findings that are counted, with their wording.
const COUNTED: [(Code, &str); 3] = [
    (Code::EmptyDescription, "without a description"),
    (Code::MachineMadeDescription, "with a generated description"),
    (Code::MissingParameterDescription, "with parameters without a description"),
];

/// Number of MCP servers that get a line each. Beyond it, one line gives their number.
const LINES_MAX: usize = 3;

/// Prints the number of tools with poor descriptions in each file. A file that can't be parsed is skipped, because the
/// registration refuses it.
pub(super) fn note<'a>(files: impl Iterator<Item = (&'a Path, &'a ToolsListFile)>) {
    let lines: Vec<String> = files.filter_map(|(path, file)| line(path, file)).collect();
    if lines.len() <= LINES_MAX {
        lines.iter().for_each(output::note);
    } else {
        output::note(format_args!(
            "{} MCP servers have tools whose descriptions are wanting; `toolgate lint` shows them",
            lines.len()
        ));
    }
}

fn line(path: &Path, file: &ToolsListFile) -> Option<String> {
    let server = tools_of(file).ok()?;
    let stock = Stock::check(&[server], &LimitsConfig::default());
    let text = wanting(&lint::texts(&stock))?;
    Some(match path.to_str() {
        Some(STANDARD_INPUT) => format!("standard input: {text}"),
        _ => format!("{}: {text}; `toolgate lint {}` shows them", file.server, path.display()),
    })
}

fn wanting(findings: &[Finding]) -> Option<String> {
    let count = |code| findings.iter().filter(|finding| finding.code == code).count();
    let counts = COUNTED.iter().map(|(code, how)| (count(*code), how));
    let parts = counts.filter(|(count, _)| *count > 0);
    let parts: Vec<_> =
        parts.map(|(count, how)| format!("{} {how}", counted(count, "tool"))).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_lab::eval::CatalogServer;

    fn said(tools: &[&str]) -> Option<String> {
        let tools = tools.iter().map(|tool| (*tool).into()).collect();
        let server = CatalogServer { name: "s".into(), description: String::new(), tools };
        wanting(&lint::texts(&Stock::check(&[server], &LimitsConfig::default())))
    }

    #[test]
    fn only_what_is_wanting_is_said() {
        let good = r#"{"name": "a", "description": "Send letters to people.", "inputSchema": {}}"#;
        assert_eq!(said(&[good]), None);
        let empty = r#"{"name": "b", "inputSchema": {}}"#;
        let twice =
            r#"{"name": "c", "description": "c", "inputSchema": {"properties": {"x": {}}}}"#;
        let text = said(&[good, empty, twice]).expect("a note");
        assert_eq!(
            text,
            "1 tool without a description, 1 tool with a generated description, 1 tool with parameters without a description"
        );
    }
}
