//! `toolgate gateway`: one MCP server in the place of many.

mod authentication;
mod calling;
mod client;
mod credentials;
mod files;
mod import;
mod install;
mod login;
mod logs;
mod running;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use toolgate_config::FlagValue;
use toolgate_mcp::{Config, LeavingOverview, Mistake, Overview, ServerOverview, line_of, mistakes};

use super::arguments::{ConfigArguments, parse_setting};
use super::core_files;
use super::credentials::CredentialArguments;
use super::failure::{Exit, Failure};
use super::interruptible;
use super::output;
use super::table::{Column, render};
use super::text::counted;
pub(super) use client::{Place, page};
use files::GatewayFiles;
pub(super) use running::store_at;
pub(super) use running::telemetry::GatewayTelemetry;
use running::{always_on_line, start_line};

const EXAMPLES: &str = "\
Examples:
  toolgate gateway                                    serve the servers of ./gateway.toml on http://127.0.0.1:7080/mcp
  toolgate gateway --mcp-json .mcp.json               serve those that a host's file names
  toolgate gateway --stdio                            speak MCP on standard input and output, for hosts that start it
  toolgate gateway --server http://127.0.0.1:7070     use a routing plane that runs already
  toolgate gateway install claude-code                write its URL into the file of a host
  toolgate gateway login notes                        log in to a server that asks for it
  toolgate gateway status
  toolgate gateway why \"check my inbox\"
  toolgate gateway call git git_status '{\"repo_path\": \".\"}'

gateway.toml names the servers:
  [server.git]
  command = [\"uvx\", \"mcp-server-git\"]
  [server.notes]
  url = \"https://notes.example/mcp\"
  headers = { Authorization = \"env:NOTES_TOKEN\" }

A host takes the gateway as any MCP server: its URL is http://127.0.0.1:7080/mcp. docs/gateway.md says more.";

/// File of the gateway where none is named.
const DEFAULT_FILE: &str = "gateway.toml";

/// Serve many MCP servers behind one URL, or look after such a gateway.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Gateway {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read the servers of hosts' files into the gateway's. Shows what would be started, and asks; secrets stay where they
    /// are.
    Import(import::Import),
    /// Write the gateway's entry into the file of a host, or take it out.
    Install(install::Install),
    /// Report the mistakes of a gateway's file. Nothing is started.
    Check {
        /// The file. Default: gateway.toml.
        file: Option<PathBuf>,
        /// A host's file of servers, such as .mcp.json, that is read beside it or in its place.
        #[arg(long, value_name = "FILE")]
        mcp_json: Option<PathBuf>,
    },
    /// Log in to a server, in a browser. Its tokens are kept encrypted, and a gateway that runs starts the server.
    Login(login::LogIn),
    /// Remove the tokens of a login, and revoke them.
    Logout(login::Place),
    /// Show the keys that stored logins are sealed with, and seal them with a new one.
    Credentials(credentials::Credentials),
    /// Show a gateway's servers, and what hosts asked of it.
    Status {
        #[command(flatten)]
        at: GatewayAddress,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the standard error of a server, its newest 64 KiB.
    Logs {
        /// The server.
        server: String,
        #[command(flatten)]
        at: GatewayAddress,
    },
    /// Start a server anew.
    Restart {
        /// The server.
        server: String,
        #[command(flatten)]
        at: GatewayAddress,
    },
    /// Show which tools a host finds for a request, as its model reads it.
    Why {
        /// The request, in the words of a model.
        query: String,
        #[command(flatten)]
        at: GatewayAddress,
    },
    /// Call a tool as a host does.
    Call {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The arguments, a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        at: GatewayAddress,
    },
}

/// Address of a gateway that runs.
#[derive(Debug, Args)]
struct GatewayAddress {
    /// The gateway's address.
    #[arg(long, default_value = "http://127.0.0.1:7080", value_name = "URL")]
    url: String,
    #[command(flatten)]
    credentials: CredentialArguments,
}

impl GatewayAddress {
    fn place(&self) -> Place<'_> {
        Place {
            url: &self.url,
            credentials: &self.credentials,
            name: "gateway",
            remedy: "start it with `toolgate gateway`, or name the address of one that listens elsewhere (--listen, gateway.listen) with --url",
        }
    }
}

/// Arguments of a gateway that is to run.
#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    files: GatewayFiles,
    /// Speak MCP on standard input and output instead of HTTP; ends when the host closes them.
    #[arg(long)]
    stdio: bool,
    /// Address and port to listen on, in place of gateway.listen.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "stdio")]
    listen: Option<std::net::SocketAddr>,
    /// A routing plane that runs already. Default: one within this process.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    credentials: CredentialArguments,
    /// The tenant whose catalog it is. Without one the plane uses "default".
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    tenant: String,
    /// The data directory: of the plane within this process, and of logins. Default: `gateway` in the usual one.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The encoder's model directory of the plane within this process (encoder.model_dir).
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    model_dir: Option<PathBuf>,
    /// The configuration file (TOML) of the plane within this process.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    server_config: Option<PathBuf>,
    /// Set one key of that plane, such as --set log.level=debug. May be given more than once.
    #[arg(long = "set", value_parser = parse_setting, value_name = "KEY=VALUE", conflicts_with = "server")]
    settings: Vec<(String, String)>,
}

pub(super) fn run(gateway: Gateway) -> Result<Exit, Failure> {
    core_files::write_none();
    let Some(action) = gateway.action else {
        let runtime = output::runtime()?;
        // A signal ends it in order, so that no process of a server is left.
        let outcome = runtime.block_on(running::run(gateway.run));
        runtime.shutdown_background();
        return outcome;
    };
    interruptible(act(action))
}

async fn act(action: Action) -> Result<Exit, Failure> {
    match action {
        Action::Import(import) => import::run(&import),
        Action::Install(install) => install::run(&install),
        Action::Check { file, mcp_json } => check(GatewayFiles { config: file, mcp_json }),
        Action::Login(arguments) => login::log_in(arguments).await,
        Action::Logout(place) => login::log_out(place).await,
        Action::Credentials(arguments) => credentials::run(arguments),
        Action::Status { at, json } => status(&at, json).await,
        Action::Logs { server, at } => logs::show(&at, &server).await,
        Action::Restart { server, at } => {
            let known = calling::known(&at, &server, Failure::new).await?;
            if let Some(known) = known.as_ref().filter(|known| known.is_held) {
                return Err(Failure::refused(held_problem(known)));
            }
            client::post(&at, &format!("gateway/restart/{server}")).await?;
            output::note(format_args!("{server} is started anew"));
            if known.is_some_and(|known| !known.leaving.is_empty()) {
                output::note("what ran before its entry changed is ended");
            }
            Ok(Exit::Done)
        }
        Action::Why { query, at } => {
            let arguments = serde_json::json!({"query": query});
            calling::why(&at, &arguments).await
        }
        Action::Call { server, tool, arguments, at } => {
            let arguments: serde_json::Value = serde_json::from_str(&arguments)
                .map_err(|error| Failure::usage(format!("the arguments are no JSON: {error}")))?;
            calling::call(&at, &server, &tool, &arguments).await
        }
    }
}

impl RunArguments {
    fn server_config(&self) -> ConfigArguments {
        ConfigArguments { config: self.server_config.clone(), settings: self.settings.clone() }
    }
}

/// Folder of the gateway in the usual data directory.
pub(super) const DATA_FOLDER: &str = "gateway";

/// Returns the gateway's data directory.
fn data_dir(
    data: Option<&Path>,
    usual: &ConfigArguments,
    flags: Vec<FlagValue>,
) -> Result<PathBuf, Failure> {
    match data {
        Some(data) => Ok(data.to_owned()),
        None => Ok(usual.load(flags)?.config.store.path.join(DATA_FOLDER)),
    }
}

fn check(files: GatewayFiles) -> Result<Exit, Failure> {
    let files = files.settled();
    if let Some(path) = &files.config {
        // A file that can't be read is told below.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = |mistake: &Mistake| {
            format!("{}: line {}: {}", path.display(), mistake.line, mistake.problem)
        };
        let mistakes: Vec<String> = mistakes(&text).iter().map(line).collect();
        if !mistakes.is_empty() {
            return Err(Failure::usage(mistakes.join("\n")));
        }
    }
    let config = files.read()?.told();
    config.check_exposure().map_err(Failure::usage)?;
    let servers = config.entries().map_err(|error| Failure::usage(error.to_string()))?;
    let waiting = waiting_lines(&config, &files);
    let ready = servers.len() - config.waiting().len();
    output::print(&format!("{} make sense\n", counted(servers.len(), "server")))?;
    if waiting.is_empty() {
        return Ok(Exit::Done);
    }
    output::print(&format!("{ready} can start; the others wait:\n"))?;
    for line in waiting {
        output::print(&format!("{line}\n"))?;
    }
    Ok(Exit::Refused)
}

/// Returns a line for each value that lacks a variable or a file: its place, what is missing, and how to mend it.
fn waiting_lines(config: &Config, files: &GatewayFiles) -> Vec<String> {
    let path = files.config.as_deref();
    let text = path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let mut lines = Vec::new();
    for (server, missing) in config.waiting() {
        for value in missing {
            let line = line_of(&text, &server, &value.key);
            let place = match (path, line, &files.mcp_json) {
                (Some(path), Some(line), _) => format!("{}: line {line}: ", path.display()),
                (_, _, Some(host)) => format!("{}: ", host.display()),
                _ => String::new(),
            };
            lines.push(format!("  {place}server.{server}: {}", value.remedy()));
        }
    }
    lines
}

async fn status(at: &GatewayAddress, json: bool) -> Result<Exit, Failure> {
    let overview = client::overview(at).await?;
    if json {
        let value = serde_json::to_value(&overview);
        output::print_json(&value.map_err(|error| Failure::new(error.to_string()))?)?;
        return Ok(Exit::Done);
    }
    let columns = [
        Column::Left("server"),
        Column::Left("state"),
        Column::Right("start"),
        Column::Right("tools"),
        Column::Left("over"),
        Column::Left("MCP"),
        Column::Left("problem"),
    ];
    let rows = overview.servers.iter().map(row);
    output::print(&render(&columns, rows))?;
    for line in finding_lines(&overview) {
        output::print(&format!("{line}\n"))?;
    }
    output::print(&totals(&overview))?;
    if let Some(line) = always_on_line(&overview) {
        output::print(&format!("{line}\n"))?;
    }
    if let Some(line) = readers_line(&overview.servers) {
        output::print(&format!("{line}\n"))?;
    }
    Ok(Exit::Done)
}

/// Returns what people are told of tools that say they only read and count as ones that write; `None` if there are none.
fn readers_line(servers: &[ServerOverview]) -> Option<String> {
    let unbelieved = servers.iter().filter(|server| server.unbelieved_readers > 0);
    let each: Vec<String> = unbelieved
        .clone()
        .map(|server| format!("{} {}", server.name, server.unbelieved_readers))
        .collect();
    let tools: usize = servers.iter().map(|server| server.unbelieved_readers).sum();
    let name = match &each[..] {
        [] => return None,
        [_] => unbelieved.map(|server| server.name.as_str()).next().unwrap_or("NAME"),
        _ => "NAME",
    };
    let say = if tools == 1 { "says that it only reads" } else { "say that they only read" };
    Some(format!(
        "{} {say} ({}), which is not believed, so hosts ask before each call: trust = \"trusted\" in [server.{name}] believes it",
        counted(tools, "tool"),
        each.join(", ")
    ))
}

/// Returns the lines below the table: what the tools cost, and what hosts asked.
fn totals(overview: &Overview) -> String {
    let Overview { searches, hits, misses, calls, refused, mended, .. } = overview;
    let rate = match overview.hit_rate() {
        Some(share) => {
            let decided = hits + misses;
            format!(", {:.0}% of the {decided} decided led to a call", 100.0 * share)
        }
        None => String::new(),
    };
    let cost = start_line(overview);
    format!(
        "{cost}\nsearches: {searches}{rate}; calls: {calls}, {refused} refused, {mended} mended\n"
    )
}

fn row(server: &ServerOverview) -> Vec<String> {
    let start = server.started_in.map_or_else(String::new, |seconds| format!("{seconds:.1} s"));
    vec![
        server.name.clone(),
        server.state.clone(),
        start,
        server.tools.to_string(),
        server.transport.clone(),
        server.protocol.clone(),
        problem(server),
    ]
}

/// Returns the first line of what is wrong with a server, or how much it is listed without.
fn problem(server: &ServerOverview) -> String {
    let ServerOverview { problem, findings, withheld, .. } = server;
    if let Some(problem) = problem.lines().next() {
        return problem.to_owned();
    }
    let parts = [(findings.len(), "tool"), (withheld.len(), "list item")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, of)| counted(*count, of)).collect();
    if parts.is_empty() { String::new() } else { format!("{} left out", parts.join(", ")) }
}

/// Returns a line for each tool, prompt and resource that is left out, and for what a changed entry left behind.
fn finding_lines(overview: &Overview) -> impl Iterator<Item = String> {
    let lines = |server: &ServerOverview| -> Vec<String> {
        let line = |finding: &String| format!("{}: {finding}", server.name);
        let findings = server.findings.iter().chain(&server.withheld).map(line);
        findings.chain(server.leaving.iter().map(|old| leaving_line(&server.name, old))).collect()
    };
    overview.servers.iter().flat_map(lines)
}

/// Returns what people are told of what a changed entry left behind.
fn leaving_line(server: &str, old: &LeavingOverview) -> String {
    let minutes = (old.ends_within / 60.0).ceil();
    format!(
        "{server}: what ran before its entry changed still runs {} and {}; it ends with them, and within {minutes} min at the latest (toolgate gateway restart {server} ends it now)",
        counted(old.calls, "call"),
        counted(old.tasks, "task"),
    )
}

/// Returns why a server that waits for what its entry lacks is not started.
fn held_problem(server: &ServerOverview) -> String {
    let ServerOverview { name, problem, .. } = server;
    format!("{name} waits, and is not started: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hit_rate_is_that_of_decided_searches() {
        let overview = Overview {
            tools: 182,
            tool_tokens: 60_527,
            start_tokens: 1_994,
            searches: 10,
            hits: 3,
            misses: 1,
            calls: 7,
            ..Overview::default()
        };
        let told = "182 tools, 60,527 tokens; a host starts with 1,994 (96.7% less)\n\
            searches: 10, 75% of the 4 decided led to a call; calls: 7, 0 refused, 0 mended\n";
        assert_eq!(totals(&overview), told);
        let none = totals(&Overview { searches: 1, ..Overview::default() });
        assert!(none.contains("searches: 1; calls: 0"), "{none}");
    }

    #[test]
    fn every_tool_that_is_left_out_has_a_line() {
        let server: ServerOverview = serde_json::from_value(serde_json::json!({
            "name": "sea", "state": "ready", "transport": "stdio", "protocol": "2025-06-18", "tools": 3,
            "is_searchable": true, "started_in": 0.4, "restarts": 0, "problem": "",
            "findings": ["tides waits for approval", "moon was rejected: x"],
        }))
        .expect("an overview");
        assert_eq!(problem(&server), "2 tools left out");
        let withheld = vec!["prompt x is left out: y".to_owned()];
        let server = ServerOverview { withheld, ..server };
        assert_eq!(problem(&server), "2 tools, 1 list item left out");
        let leaving = vec![LeavingOverview { calls: 0, tasks: 1, ends_within: 541.0 }];
        let overview =
            Overview { servers: vec![ServerOverview { leaving, ..server }], ..Overview::default() };
        let lines: Vec<String> = finding_lines(&overview).collect();
        let wanted = [
            "sea: tides waits for approval",
            "sea: moon was rejected: x",
            "sea: prompt x is left out: y",
            "sea: what ran before its entry changed still runs 0 calls and 1 task; it ends with them, and within 10 min at the latest (toolgate gateway restart sea ends it now)",
        ];
        assert_eq!(lines, wanted);
    }
}
