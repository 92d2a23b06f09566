//! `toolgate pack list`: lists the available packs, or the pack of each MCP server.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::documents;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::table::{Column, render};
use toolgate_routing::packs::{Pack, Packs};

const EXAMPLES: &str = "\
Examples:
  toolgate pack list
  toolgate pack list --catalog servers/ --directory packs/";

/// List the packs that there are, or which pack each MCP server of a catalog has.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    /// Catalog files, or directories of them.
    #[arg(long, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// Packs of your own (packs.directory).
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A line of the list: the MCP server, the pack's name, the number of tools, and the number of tools with requests.
struct Row {
    server: String,
    pack: Option<String>,
    tools: usize,
    packed: usize,
    requests: usize,
}

pub(super) fn run(list: &List) -> Result<Exit, Failure> {
    let packs = Packs::shipped();
    let packs = match &list.directory {
        Some(directory) => packs.with_directory(directory).map_err(Failure::new)?,
        None => packs,
    };
    let rows = if list.catalog.is_empty() {
        packs.all().iter().map(of_pack).collect()
    } else {
        of_catalog(&packs, &list.catalog)?
    };
    if list.json {
        let as_json = |row: &Row| {
            json!({
                "server": row.server, "pack": row.pack, "tools": row.tools,
                "tools_with_requests": row.packed, "requests": row.requests,
            })
        };
        let rows: Vec<_> = rows.iter().map(as_json).collect();
        output::print_json(&json!({ "packs": rows }))?;
    } else {
        output::print(&table(&rows))?;
    }
    Ok(Exit::Done)
}

fn of_pack(pack: &Pack) -> Row {
    let name = pack.servers.first().cloned().unwrap_or_default();
    Row {
        server: pack.servers.join(", "),
        pack: Some(name),
        tools: pack.tools.len(),
        packed: pack.tools.len(),
        requests: pack.requests(),
    }
}

fn of_catalog(packs: &Packs, paths: &[PathBuf]) -> Result<Vec<Row>, Failure> {
    let servers = documents::read_catalogs(paths)?;
    let row = |server: &toolgate_lab::eval::CatalogServer| {
        let names: HashSet<String> = server.tools.iter().filter_map(|text| name_of(text)).collect();
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        let pack = packs.of_server(&server.name, &names);
        let tools = pack.iter().flat_map(|pack| &pack.tools);
        let known = tools.filter(|(name, _)| names.contains(name.as_str()));
        let requests: Vec<usize> = known.map(|(_, tool)| tool.lines.all().len()).collect();
        Row {
            server: server.name.clone(),
            pack: pack.and_then(|pack| pack.servers.first().cloned()),
            tools: names.len(),
            packed: requests.len(),
            requests: requests.iter().sum(),
        }
    };
    Ok(servers.iter().map(row).collect())
}

/// Returns the name of a tool. A tool without a name can't be registered either.
fn name_of(tool: &str) -> Option<String> {
    let tool: serde_json::Value = serde_json::from_str(tool).ok()?;
    tool.get("name")?.as_str().map(str::to_owned)
}

fn table(rows: &[Row]) -> String {
    let columns = [
        Column::Left("MCP SERVER"),
        Column::Left("PACK"),
        Column::Right("TOOLS"),
        Column::Right("WITH REQUESTS"),
        Column::Right("REQUESTS"),
    ];
    let line = |row: &Row| {
        let pack = row.pack.clone().unwrap_or_else(|| "-".to_owned());
        let counts = [row.tools, row.packed, row.requests].map(|count| count.to_string());
        [row.server.clone(), pack].into_iter().chain(counts).collect()
    };
    render(&columns, rows.iter().map(line))
}
