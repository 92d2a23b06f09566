//! `toolgate pack`: what people say who want well-known tools, in files. No server is needed.

mod embed;

use std::collections::HashSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::documents::{self, read_text};
use super::failure::{Exit, Failure};
use super::output;
use super::table::{Column, render};
use super::text::counted;
use crate::packs::{Pack, Packs, lint};

const EXAMPLES: &str = "\
Examples:
  toolgate pack lint mine.yaml
  toolgate pack list
  toolgate pack list --catalog servers/ --directory packs/
  toolgate pack embed --directory packs/

A pack has, for the tools of an MCP server, requests of people who want them. Where packs.enabled is true, tools are
found by them as well as by their summaries. Packs of your own go into packs.directory.";

/// Look through packs: what people say who want the tools of an MCP server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PackCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Lint(Lint),
    List(List),
    Embed(embed::Embed),
}

/// Say what is wrong or wanting in packs.
#[derive(Debug, Args)]
struct Lint {
    /// Packs, as YAML.
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
}

/// List the packs that there are, or which pack each MCP server of a catalog has.
#[derive(Debug, Args)]
struct List {
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

pub(super) async fn run(command: PackCommand) -> Result<Exit, Failure> {
    match command.action {
        Action::Lint(lint) => check(&lint.paths),
        Action::List(list) => show(&list),
        Action::Embed(embed) => embed::run(embed).await,
    }
}

fn check(paths: &[PathBuf]) -> Result<Exit, Failure> {
    let mut is_clean = true;
    for path in paths {
        let text = read_text(path)?;
        let (said, found) = match Pack::parse(&text) {
            Ok(pack) => {
                let tools = counted(pack.tools.len(), "tool");
                (format!("{tools}, {}", counted(pack.requests(), "request")), lint::lint(&pack))
            }
            Err(mistakes) => ("can't be read".to_owned(), mistakes),
        };
        is_clean &= found.is_empty();
        let lines: String = found.iter().map(|mistake| format!("  {mistake}\n")).collect();
        let verdict = if found.is_empty() { ", nothing is wanting" } else { "" };
        output::print(&format!("{}: {said}{verdict}\n{lines}", path.display()))?;
    }
    Ok(if is_clean { Exit::Done } else { Exit::Refused })
}

/// A line of the list: the MCP server, the pack's name, and of how many tools how many have requests.
struct Row {
    server: String,
    pack: Option<String>,
    tools: usize,
    packed: usize,
    requests: usize,
}

fn show(list: &List) -> Result<Exit, Failure> {
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
    let row = |server: &crate::eval::CatalogServer| {
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

/// A tool that has none can't be registered either.
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
