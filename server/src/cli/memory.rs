//! `toolgate memory`: shows the size of a tenant's memory of calls, and clears it.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate_client::{Client, v1};

use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::table::{Column, render};
use super::text::{counted, grouped, one_line};
use super::{names, output};

const EXAMPLES: &str = "\
Examples:
  toolgate memory show
  toolgate memory show --server git --json
  toolgate memory clear                                   forget everything of the tenant
  toolgate memory clear --server git --tool git_log

For tenants of memory.tenants, the server remembers which tool was called for which intent: embeddings, no texts.";

const DEADLINE: Duration = Duration::from_secs(30);

/// Show or clear what is remembered of the tenant's calls.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Memory {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show how much is remembered, tool by tool.
    Show {
        /// Only this MCP server's tools.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
        server: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientArguments,
    },
    /// Forget what is remembered, for good.
    Clear {
        /// Only this MCP server's tools.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
        server: String,
        /// Only this tool of the server.
        #[arg(
            long,
            default_value = "",
            hide_default_value = true,
            value_name = "NAME",
            requires = "server"
        )]
        tool: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientArguments,
    },
}

pub(super) async fn run(arguments: Memory) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Show { server, json, client } => {
            let client = client.connect(DEADLINE).await?;
            let request =
                v1::GetMemoryStatsRequest { server: server.clone(), ..Default::default() };
            let stats = client.get_memory_stats(request).await?;
            if stats.tools.is_empty() {
                tell_if_missing(&client, &server).await;
            }
            if json {
                output::print_json(&as_json(&stats))?;
            } else {
                output::print(&report(&stats))?;
            }
        }
        Action::Clear { server, tool, json, client } => {
            let client = client.connect_to_change(DEADLINE).await?;
            let request =
                v1::ClearMemoryRequest { server: server.clone(), name: tool, ..Default::default() };
            let cleared = client.clear_memory(request).await?.cleared;
            if cleared == 0 {
                tell_if_missing(&client, &server).await;
            }
            if json {
                output::print_json(&json!({ "cleared": cleared }))?;
            } else {
                let exemplars = counted(cleared as usize, "exemplar");
                output::print(&format!("{exemplars} forgotten\n"))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Tells that the catalog does not have an MCP server of which nothing is remembered: its name may be misspelt.
async fn tell_if_missing(client: &Client, server: &str) {
    if !server.is_empty()
        && let Some(message) = names::missing_server(client, &[server]).await
    {
        output::note(message);
    }
}

fn as_json(stats: &v1::GetMemoryStatsResponse) -> Value {
    let tool = |one: &v1::ToolMemory| {
        json!({
            "server": one.server,
            "name": one.name,
            "exemplars": one.exemplars,
            "last_call_time": one.last_call_time.as_ref().map(ToString::to_string),
        })
    };
    let tools: Vec<Value> = stats.tools.iter().map(tool).collect();
    json!({ "enabled": stats.enabled, "exemplars": stats.exemplars, "tools": tools })
}

fn report(stats: &v1::GetMemoryStatsResponse) -> String {
    let state = if stats.enabled { "on" } else { "off (memory.tenants does not name this tenant)" };
    if stats.tools.is_empty() {
        return format!("Nothing is remembered; memory is {state}.\n");
    }
    let columns = [Column::Left("TOOL"), Column::Right("EXEMPLARS"), Column::Left("LAST CALL")];
    let rows = stats.tools.iter().map(|one| {
        let last = one.last_call_time.as_ref().map(ToString::to_string).unwrap_or_default();
        let tool = format!("{}/{}", one.server, one.name);
        vec![one_line(&tool, 80), grouped(one.exemplars.into()), last]
    });
    let all = counted(stats.exemplars as usize, "exemplar");
    format!("{}\n{all}; memory is {state}\n", render(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_reads_well() {
        let tool = v1::ToolMemory {
            server: "git".into(),
            name: "git_log".into(),
            exemplars: 3,
            last_call_time: "2026-11-20T18:55:01Z".parse().ok(),
        };
        let stats = v1::GetMemoryStatsResponse { enabled: true, exemplars: 3, tools: vec![tool] };
        let text = report(&stats);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["git/git_log", "3", "2026-11-20T18:55:01Z"]);
        assert!(text.ends_with("3 exemplars; memory is on\n"), "{text}");
        assert!(report(&v1::GetMemoryStatsResponse::default()).contains("off"));
    }
}
