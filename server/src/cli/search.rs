//! `toolgate search`: searches tools by name, by MCP server, by keywords, or in natural language.

mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::route::{Detail, read_state};
use super::{json, output};

const EXAMPLES: &str = "\
Examples:
  toolgate search \"is anyone waiting for my review?\"
  toolgate search \"select:mcp__git__git_log,slack/send_message\"
  toolgate search mcp__git                      every tool of an MCP server; its name does as well
  toolgate search \"slack send\"                  keywords
  toolgate search \"+slack send\" --max-results 3  only tools that match slack
  toolgate search \"push my branch\" --json

Exit code 3 when nothing is found.";

const DEADLINE: Duration = Duration::from_secs(10);

/// Find tools: by name, by MCP server, by keywords, or in natural language.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Search {
    /// What to look for; several words are one query, quoted or not.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// The most tools to answer with, 1 to 100; `select:` is answered whole.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_results: Option<u32>,
    /// How much of each tool is sent. Names alone don't make a tool callable.
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t = Detail::Schemas)]
    detail: Detail,
    /// What the agent has done and may do (JSON, TOML or YAML).
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The handle to add the tools to.
    #[arg(long, value_name = "HANDLE", default_value = "", hide_default_value = true)]
    handle: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

pub(super) async fn run(search: Search) -> Result<Exit, Failure> {
    let query = search.query.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::usage(
            "the query is blank: say what to look for, such as: toolgate search \"is anyone waiting for my review?\"",
        ));
    }
    let request = v1::SearchToolsRequest {
        query,
        max_results: search.max_results,
        detail: v1::Detail::from(search.detail).into(),
        state: read_state(search.state)?,
        active_set_handle: search.handle,
        ..Default::default()
    };
    let answer = search.client.connect(DEADLINE).await?.search_tools(request).await?;
    if search.json {
        output::print_json(&json::search(&answer))?;
    } else {
        output::print(&report::report(&answer))?;
    }
    Ok(if answer.tools.is_empty() { Exit::Refused } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{Arguments, Command};
    use clap::Parser as _;

    #[test]
    fn the_words_of_a_query_need_no_quotes() {
        let parse = |line: &[&str]| Arguments::try_parse_from(line);
        for words in [&["+slack send"][..], &["+slack", "send"]] {
            let line = [&["toolgate", "search"], words, &["--max-results", "3"]].concat();
            let Command::Search(search) = parse(&line).expect("a good line").command else {
                panic!("no search");
            };
            assert_eq!(
                (search.query.join(" "), search.max_results),
                ("+slack send".into(), Some(3))
            );
        }
        assert!(parse(&["toolgate", "search"]).is_err());
        assert!(parse(&["toolgate", "search", "x", "--max-results", "0"]).is_err());
        assert!(parse(&["toolgate", "search", "x", "--detail", "all"]).is_err());
    }
}
