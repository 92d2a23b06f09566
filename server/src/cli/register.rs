//! `toolgate register`: registers MCP servers' tools in the catalog, from the servers themselves or from files with their
//! `tools/list`.

mod mcp;
mod notes;
mod report;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toolgate_client::{Client, v1};

use super::arguments::ClientArguments;
use super::documents::{self, RegistrationSettings, STANDARD_INPUT, ToolsListFile, Trust};
use super::failure::{Exit, Failure};
use super::{json as wire, output};
use mcp::McpArguments;

const EXAMPLES: &str = "\
Examples:
  toolgate register --mcp 'uvx mcp-server-git' --watch
  toolgate register --mcp https://tools.example/mcp --header 'Authorization: env:TOKEN' --server tools
  toolgate register git.json
  toolgate register servers/ --tenant acme
  toolgate register tools.json --server git --settings git.toml
  toolgate register more.json --server git --mode merge
  toolgate register - --server mine --trust untrusted <tools.json
  toolgate register --pending slack

--mcp starts a command without a shell, or opens a URL, and lists its tools. With --watch, the tools are registered again
when the server says that they changed, and every five minutes; a server that leaves is started again.

A file holds the answer of an MCP server's tools/list: the result, the JSON-RPC response around it, or the
bare array. - reads one from standard input. Of a directory, every *.json is taken. A settings file (TOML or JSON) adds what MCP does not say:
  required_scopes = [\"repo:read\"]
  [[tools]]
  name = \"git_push\"
  precondition = { all = [{ is_authenticated = \"repo:write\" }, { milestone_reached = \"reviewed\" }] }

Exit code 3 when a tool was rejected; the others are stored all the same.";

/// Deadline for one file. It is long because every new summary is embedded before the answer.
const DEADLINE: Duration = Duration::from_secs(600);

/// Put MCP servers' tools into the catalog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Register {
    /// Files with a tools/list, or directories of them; - for standard input, with --server.
    #[arg(required_unless_present_any = ["pending", "mcp"], value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    source: McpArguments,
    /// The MCP server's name. Default: what the server calls itself; the file's "name", else the file's own name. One server
    /// or file only.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// What becomes of tools that the server had before and the file does not name.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Replace)]
    mode: Mode,
    /// How far the MCP server's texts are believed, which decides what of them is kept back (docs/safety.md). Default:
    /// what --settings says, else standard.
    #[arg(long, alias = "tier", value_enum, value_name = "TIER")]
    trust: Option<Trust>,
    /// Preconditions, scopes and summaries (JSON, TOML or YAML). One server or file only.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Announce this MCP server, whose tools are not known yet: answers name it as pending until it is
    /// registered. May be given more than once.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["paths", "server", "settings", "trust"])]
    pending: Vec<String>,
    /// Store nothing of a file when one of its tools is rejected.
    #[arg(long)]
    all_or_nothing: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

/// What becomes of tools that the file does not name.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// They are removed.
    Replace,
    /// They stay.
    Merge,
}

/// A file and its content, or the error of reading it.
struct Listing {
    path: PathBuf,
    file: Result<ToolsListFile, Failure>,
}

/// Result of registering one file.
struct Registered {
    path: PathBuf,
    server: String,
    outcome: Result<v1::RegisterServerResponse, Failure>,
}

pub(super) async fn run(register: Register) -> Result<Exit, Failure> {
    if !register.pending.is_empty() {
        return announce(&register).await;
    }
    if !register.source.mcp.is_empty() {
        return mcp::run(&register).await;
    }
    let files = documents::find(&register.paths)?;
    register.check_single(files.len())?;
    let settings = register.read_settings()?;
    // Read on a thread of its own, so that Ctrl-C works while the command waits for standard input.
    let read = tokio::task::spawn_blocking(move || files.into_iter().map(Listing::read).collect());
    let listings: Vec<Listing> =
        read.await.map_err(|error| Failure::new(format!("files cannot be read: {error}")))?;
    let client = register.client.connect_to_change(DEADLINE).await?;
    let done = register.register_all(&client, &listings, settings.clone()).await?;
    register.print(&done, &listings, &settings)?;
    Ok(exit(&done))
}

/// Announces MCP servers whose tools are registered later.
async fn announce(register: &Register) -> Result<Exit, Failure> {
    let client = register.client.connect_to_change(DEADLINE).await?;
    let mut servers = Vec::new();
    for server in &register.pending {
        let server = server.clone();
        let request = v1::RegisterServerRequest { server, pending: true, ..Default::default() };
        let answer = client.register_server(request).await?;
        servers.extend(answer.server);
    }
    if register.json {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        output::print_json(&json!({ "pending": names }))?;
    } else {
        let lines = servers.iter().map(|server| format!("{}: pending\n", server.name));
        output::print(&lines.collect::<String>())?;
    }
    Ok(Exit::Done)
}

impl Listing {
    fn read(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            if io::stdin().is_terminal() {
                output::note("reading standard input; Ctrl-D ends it");
            }
            let file = ToolsListFile::read_standard_input();
            return Self { path: STANDARD_INPUT.into(), file };
        }
        let file = ToolsListFile::read(&path);
        Self { path, file }
    }
}

impl Register {
    fn read_settings(&self) -> Result<RegistrationSettings, Failure> {
        let settings = self.settings.as_deref().map(documents::read).transpose()?;
        Ok(settings.unwrap_or_default())
    }

    /// Prints the outcomes of registrations.
    fn print(
        &self,
        done: &[Registered],
        listings: &[Listing],
        settings: &RegistrationSettings,
    ) -> Result<(), Failure> {
        if self.json {
            let all: Vec<Value> = done.iter().map(as_json).collect();
            output::print_json(&json!({ "registrations": all }))?;
            return Ok(());
        }
        output::print(&report::report(done))?;
        report::failures(done).for_each(|failure| output::print_error(&failure));
        let is_trust_named = self.trust.is_some() || settings.names_trust();
        report::taken(done).filter(|_| !is_trust_named).iter().for_each(output::note);
        let stored = listings.iter().zip(done).filter(|(_, done)| done.outcome.is_ok());
        notes::note(
            stored.filter_map(|(listing, _)| Some((&*listing.path, listing.file.as_ref().ok()?))),
        );
        Ok(())
    }

    fn check_single(&self, files: usize) -> Result<(), Failure> {
        let given = [("--server", self.server.is_some()), ("--settings", self.settings.is_some())];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) if files != 1 => Err(Failure::usage(format!(
                "{flag} is for one server or file, and here are {files}: register them one by one"
            ))),
            _ => Ok(()),
        }
    }

    /// Registers one file after another. Only an unreachable server ends this early.
    async fn register_all(
        &self,
        client: &Client,
        listings: &[Listing],
        settings: RegistrationSettings,
    ) -> Result<Vec<Registered>, Failure> {
        let progress = output::progress_over(listings.len(), "MCP servers");
        let mut done = Vec::with_capacity(listings.len());
        for Listing { path, file } in listings {
            let request = match file {
                Ok(file) => self.request(path, file, settings.clone()),
                Err(failure) => Err(failure.clone()),
            };
            let (server, outcome) = match request {
                Ok(request) => {
                    progress.set_message(request.server.clone());
                    let server = request.server.clone();
                    (server, client.register_server(request).await.map_err(Failure::from))
                }
                Err(failure) => (String::new(), Err(failure)),
            };
            if let Err(failure) = &outcome
                && failure.exit() == Exit::Unreachable
            {
                progress.finish_and_clear();
                return outcome.map(|_| done);
            }
            done.push(Registered { path: path.clone(), server, outcome });
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(done)
    }

    fn request(
        &self,
        path: &Path,
        file: &ToolsListFile,
        settings: RegistrationSettings,
    ) -> Result<v1::RegisterServerRequest, Failure> {
        let server = self.server.clone().unwrap_or_else(|| file.server.clone());
        if server.is_empty() {
            let problem =
                format!("{}: no MCP server's name in it; give --server NAME", path.display());
            return Err(Failure::new(problem));
        }
        if file.is_cut {
            output::warn(format_args!(
                "{}: only the first page of a listing (it has a nextCursor); fetch all pages",
                path.display()
            ));
        }
        let mode = match self.mode {
            Mode::Replace => v1::RegisterMode::Replace,
            Mode::Merge => v1::RegisterMode::Merge,
        };
        let mut request = v1::RegisterServerRequest {
            server,
            description: file.description.clone(),
            tools_list_json: file.text.clone().into(),
            mode: mode.into(),
            all_or_nothing: self.all_or_nothing,
            ..Default::default()
        };
        settings.apply_to(&mut request);
        if let Some(trust) = self.trust {
            request.set_trust_tier(trust.into());
        }
        Ok(request)
    }
}

/// Returns the worst exit of all files.
fn exit(done: &[Registered]) -> Exit {
    let is_rejected = |outcome: &v1::ToolOutcome| outcome.kind() == v1::OutcomeKind::Rejected;
    let has_rejected =
        |answer: &v1::RegisterServerResponse| answer.outcomes.iter().any(is_rejected);
    if done.iter().any(|file| file.outcome.is_err()) {
        Exit::Failed
    } else if done.iter().any(|file| file.outcome.as_ref().is_ok_and(has_rejected)) {
        Exit::Refused
    } else {
        Exit::Done
    }
}

fn as_json(file: &Registered) -> Value {
    let mut value = match &file.outcome {
        Ok(answer) => wire::registration(answer),
        Err(failure) => json!({ "error": failure.message() }),
    };
    value["file"] = json!(file.path.to_string_lossy());
    value
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{Arguments, Command};
    use super::*;
    use clap::Parser as _;

    fn parse(line: &str) -> Register {
        match Arguments::try_parse_from(line.split(' ')).expect(line).command {
            Command::Register(register) => register,
            other => panic!("{other:?}"),
        }
    }

    fn answered(kinds: &[v1::OutcomeKind]) -> Registered {
        let outcome =
            |kind: &v1::OutcomeKind| v1::ToolOutcome { kind: (*kind).into(), ..Default::default() };
        Registered {
            path: "f.json".into(),
            server: "s".into(),
            outcome: Ok(v1::RegisterServerResponse {
                outcomes: kinds.iter().map(outcome).collect(),
                ..Default::default()
            }),
        }
    }

    #[test]
    fn the_worst_file_decides() {
        let good = || answered(&[v1::OutcomeKind::Accepted, v1::OutcomeKind::Removed]);
        let rejected = || answered(&[v1::OutcomeKind::Accepted, v1::OutcomeKind::Rejected]);
        let failed = || Registered { outcome: Err(Failure::new("x")), ..good() };
        assert_eq!(exit(&[good(), good()]), Exit::Done);
        assert_eq!(exit(&[good(), rejected()]), Exit::Refused);
        assert_eq!(exit(&[rejected(), failed(), good()]), Exit::Failed);
    }

    #[test]
    fn what_is_for_one_file_is_refused_for_many() {
        let register = parse("toolgate register d --server git");
        assert!(register.check_single(1).is_ok());
        let failure = register.check_single(2).expect_err("two files");
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(parse("toolgate register d").check_single(2).is_ok());
    }

    #[test]
    fn a_file_becomes_a_request_with_its_bytes_untouched() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file-name.json");
        let text = "{ \"name\": \"git\",  \"tools\": [] }\n";
        std::fs::write(&path, text).expect("written");
        let file = ToolsListFile::read(&path).expect("a listing");
        let request = |line: &str, settings: RegistrationSettings| {
            parse(line).request(&path, &file, settings).expect("a request")
        };
        let none = RegistrationSettings::default;
        let merged = request("toolgate register x --mode merge", none());
        assert_eq!((merged.server.as_str(), merged.mode()), ("git", v1::RegisterMode::Merge));
        assert_eq!(merged.tools_list_json, text.trim());
        assert_eq!(request("toolgate register x --server other", none()).server, "other");
        let trusted = || toml::from_str("trust_tier = \"trusted\"").expect("settings");
        assert_eq!(request("toolgate register x", trusted()).trust_tier(), v1::TrustTier::Trusted);
        for flag in ["--trust", "--tier"] {
            let line = format!("toolgate register x {flag} untrusted");
            let told = request(&line, trusted()).trust_tier();
            assert_eq!(told, v1::TrustTier::Untrusted, "the command line wins");
        }
    }
}
