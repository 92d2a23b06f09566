//! `toolgate servers` and `toolgate unregister`: lists the MCP servers of the catalog, and removes one.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::json::short;
use super::names;
use super::output;
use super::table::{Column, render};
use super::text::{counted, grouped, one_line};

const LIST_EXAMPLES: &str = "\
Examples:
  toolgate servers
  toolgate servers --json | jq -r '.servers[].name'";

const REMOVE_EXAMPLES: &str = "\
Examples:
  toolgate unregister slack
  toolgate unregister slack --etag ETAG         only when nobody changed it since `toolgate servers --json`";

const DEADLINE: Duration = Duration::from_secs(30);
const DESCRIPTION_WIDTH: usize = 80;

/// List the MCP servers of the catalog.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(super) struct Servers {
    /// Print JSON, with etags and revisions.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

/// Take an MCP server and its tools out of the catalog.
#[derive(Debug, Args)]
#[command(after_help = REMOVE_EXAMPLES)]
pub(super) struct Unregister {
    /// The MCP server's name.
    server: String,
    /// Only when the server still has this etag.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "ETAG")]
    etag: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

pub(super) async fn list(arguments: Servers) -> Result<Exit, Failure> {
    let servers = arguments.client.connect(DEADLINE).await?.all_servers().await?;
    if arguments.json {
        let servers: Vec<Value> = servers.iter().map(as_json).collect();
        output::print_json(&json!({ "servers": servers }))?;
    } else {
        output::print(&report(&servers))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn remove(arguments: Unregister) -> Result<Exit, Failure> {
    let Unregister { server, etag, json, client } = arguments;
    let request =
        v1::UnregisterServerRequest { server: server.clone(), etag, ..Default::default() };
    let client = client.connect_to_change(DEADLINE).await?;
    let answer = match client.unregister_server(request).await {
        Ok(answer) => answer,
        Err(error) => return Err(names::failure_of(&client, &[&server], error).await),
    };
    if json {
        output::print_json(&json!({
            "server": server,
            "removed_tools": answer.removed_tools,
            "catalog_revision": answer.catalog_revision,
        }))?;
    } else {
        let tools = counted(answer.removed_tools as usize, "tool");
        output::print(&format!("{server}: unregistered with {tools}\n"))?;
    }
    Ok(Exit::Done)
}

fn as_json(server: &v1::McpServer) -> Value {
    json!({
        "name": server.name,
        "description": server.description,
        "tool_count": server.tool_count,
        "pending": server.pending,
        "transport_hint": short(server.transport_hint().as_str_name(), "TRANSPORT_HINT_"),
        "trust_tier": short(server.trust_tier().as_str_name(), "TRUST_TIER_"),
        "etag": server.etag,
        "revision": server.revision,
        "update_time": server.update_time.as_ref().map(ToString::to_string),
    })
}

fn report(servers: &[v1::McpServer]) -> String {
    if servers.is_empty() {
        return "No MCP servers. `toolgate register FILE` adds one.\n".into();
    }
    let columns = [
        Column::Left("SERVER"),
        Column::Right("TOOLS"),
        Column::Left(""),
        Column::Left("WHAT FOR"),
    ];
    let rows = servers.iter().map(|server| {
        vec![
            server.name.clone(),
            grouped(server.tool_count.into()),
            (if server.pending { "pending" } else { "" }).to_owned(),
            one_line(&server.description, DESCRIPTION_WIDTH),
        ]
    });
    let tools: u32 = servers.iter().map(|server| server.tool_count).sum();
    let sum = format!(
        "{} with {}",
        counted(servers.len(), "MCP server"),
        counted(tools as usize, "tool")
    );
    format!("{}\n{sum}\n", render(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_read_well() {
        let server = |name: &str, tool_count, pending| v1::McpServer {
            name: name.into(),
            tool_count,
            pending,
            description: "For\nthis.".into(),
            ..Default::default()
        };
        let text = report(&[server("git", 1200, false), server("slack", 0, true)]);
        for part in [
            "git     1,200           For this.",
            "slack       0  pending  For this.",
            "2 MCP servers with 1,200 tools",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(report(&[]).contains("toolgate register"));
    }
}
