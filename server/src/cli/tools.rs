//! `toolgate tools`: lists the tools of the catalog.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::names;
use super::route::read_state;
use super::table::{Column, render};
use super::text::{counted, grouped, one_line};
use super::{json as wire, output};

const EXAMPLES: &str = "\
Examples:
  toolgate tools
  toolgate tools --server git
  toolgate tools --state examples/state.json
  toolgate tools --json | jq -r '.tools[].model_name'";

/// Deadline for one page.
const DEADLINE: Duration = Duration::from_secs(10);
const SUMMARY_WIDTH: usize = 72;

/// List the tools of the catalog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tools {
    /// Only this MCP server's.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only what an agent in this state may see (JSON, TOML or YAML, as for `toolgate route`).
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print JSON, with whole definitions.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

pub(super) async fn run(arguments: Tools) -> Result<Exit, Failure> {
    let is_whole = arguments.server.is_none() && arguments.state.is_none();
    let state = read_state(arguments.state)?;
    let client = arguments.client.connect(DEADLINE).await?;
    let server = arguments.server.as_deref();
    let tools = match client.all_tools(server, state).await {
        Ok(tools) => tools,
        Err(error) => return Err(names::failure_of(&client, server.as_slice(), error).await),
    };
    if arguments.json {
        let tools: Vec<Value> = tools.iter().map(wire::tool).collect();
        output::print_json(&json!({ "tools": tools }))?;
    } else {
        output::print(&report(&tools, is_whole))?;
    }
    Ok(Exit::Done)
}

fn report(tools: &[v1::Tool], is_whole: bool) -> String {
    if tools.is_empty() {
        let advice = if is_whole {
            " `toolgate register FILE` adds an MCP server's."
        } else {
            " `toolgate tools` lists all there are."
        };
        return format!("No tools.{advice}\n");
    }
    let columns =
        [Column::Left("TOOL"), Column::Right("TOKENS"), Column::Left(""), Column::Left("SUMMARY")];
    let rows = tools.iter().map(|tool| {
        vec![
            tool.model_name.clone(),
            grouped(tool.schema_tokens.into()),
            marks(tool),
            one_line(&tool.summary, SUMMARY_WIDTH),
        ]
    });
    let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
    let sum = |count: fn(&v1::Tool) -> u32| {
        grouped(tools.iter().map(|tool| u64::from(count(tool))).sum())
    };
    format!(
        "{}\n{} of {}: {} tokens in full, {} as summaries\n",
        render(&columns, rows),
        counted(tools.len(), "tool"),
        counted(servers.len(), "MCP server"),
        sum(|tool| tool.schema_tokens),
        sum(|tool| tool.summary_tokens),
    )
}

/// Returns the special properties of a tool, such as `quarantined`.
fn marks(tool: &v1::Tool) -> String {
    let guarded = tool.precondition.is_some() || !tool.required_scopes.is_empty();
    let all = [
        (tool.quarantined, "quarantined"),
        (tool.always_load, "always"),
        (tool.critical, "critical"),
        (guarded, "guarded"),
    ];
    let set: Vec<&str> = all.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
    set.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_reads_well() {
        let tool = |server: &str, name: &str, always_load| v1::Tool {
            server: server.into(),
            model_name: format!("mcp__{server}__{name}"),
            schema_tokens: 1000,
            summary_tokens: 20,
            summary: "Does\na thing.".into(),
            always_load,
            ..Default::default()
        };
        let text = report(&[tool("git", "log", true), tool("time", "now", false)], true);
        for part in [
            "mcp__git__log    1,000  always  Does a thing.",
            "mcp__time__now   1,000          Does a thing.",
            "2 tools of 2 MCP servers: 2,000 tokens in full, 40 as summaries",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(report(&[], true).contains("toolgate register"));
        assert!(report(&[], false).contains("`toolgate tools` lists"));
    }
}
