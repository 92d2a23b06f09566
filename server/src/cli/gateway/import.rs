//! `toolgate gateway import`: servers out of hosts' files into the gateway's.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_import::{
    FoundServer, GatewayEntry, Host, HostFile, Place, Surroundings, entries, files,
};
use toolgate_mcp::Config;

use super::super::failure::{Exit, Failure};
use super::super::output;
use super::super::table::{Column, render};
use super::super::text::counted;
use super::files::own_urls;
use super::install::{agreed, difference, write};

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The gateway's file, which gets the servers that it does not have.
    #[arg(long, default_value = super::DEFAULT_FILE, value_name = "FILE")]
    config: PathBuf,
    /// Write trust = "trusted" into each added entry: what the servers say of their tools is believed, such as that one only reads.
    #[arg(long)]
    trust: bool,
    /// Show the change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Variables that programs need where certificates or the way to the network are special.
const SURROUNDINGS: [&str; 7] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Change of the gateway's file.
struct Extension {
    text: String,
    /// Number of added servers.
    count: usize,
    /// Variables to set before the gateway starts, since secrets are not copied.
    secrets: Vec<String>,
    /// Lines for people on added servers that wait for variables.
    waiting: Vec<String>,
    /// Variables that are set here and that an added program does not get.
    withheld: Vec<&'static str>,
}

/// Server with the file that names it.
struct Source {
    server: FoundServer,
    file: PathBuf,
}

pub(super) fn run(import: &Import) -> Result<Exit, Failure> {
    let home = std::env::home_dir().ok_or_else(|| Failure::usage("HOME is not set"))?;
    let old = match fs::read_to_string(&import.config) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Failure::new(format!("{}: {error}", import.config.display())));
        }
    };
    let text = old.as_deref().unwrap_or_default();
    let known = Config::parse(text, &import.config);
    let known = known.map_err(|error| Failure::usage(error.to_string()))?;
    let sources = sources(&home, &std::env::current_dir()?, &own_urls(&known));
    if sources.is_empty() {
        output::note(
            "no host's file here names an MCP server; `toolgate gateway --help` shows how gateway.toml names one",
        );
        return Ok(Exit::Done);
    }
    output::print(&render(
        &[Column::Left("server"), Column::Left("starts or reaches"), Column::Left("file")],
        sources.iter().map(row),
    ))?;
    let found: Vec<FoundServer> = sources.into_iter().map(|source| source.server).collect();
    let extension = extended(import, &known, text, &found);
    let new = &extension.text;
    if new == text {
        output::note(format_args!("{} has all of them", import.config.display()));
        return Ok(Exit::Done);
    }
    output::note(format_args!("{} to add", counted(extension.count, "server")));
    output::print(&difference(&import.config, text, new))?;
    tell(import, &extension);
    if import.dry_run {
        return Ok(Exit::Done);
    }
    if !import.yes && !agreed()? {
        return Err(Failure::usage("nothing was written"));
    }
    write(&import.config, old.as_deref(), new).map_err(|error| {
        Failure::new(format!("{} can't be written: {error}", import.config.display()))
    })?;
    output::note(format_args!(
        "wrote {}; `toolgate gateway --config {}` serves it",
        import.config.display(),
        import.config.display()
    ));
    Ok(Exit::Done)
}

/// Tells people what a change of the file leaves to them.
fn tell(import: &Import, extension: &Extension) {
    let Extension { secrets, waiting, withheld, .. } = extension;
    if !secrets.is_empty() {
        output::warn(format_args!(
            "secrets are not copied: set {} before the gateway starts; until then their servers wait, and the others serve",
            secrets.join(", ")
        ));
    }
    for line in waiting {
        output::note(line);
    }
    if let [first, ..] = withheld[..] {
        let (verbs, pronoun) = match withheld[..] {
            [_] => ("is set here and reaches", "it"),
            _ => ("are set here and reach", "them"),
        };
        output::note(format_args!(
            "{} {verbs} no server unless its env names {pronoun}: env = {{ {first} = \"env:{first}\" }}",
            withheld.join(", ")
        ));
    }
    if !import.trust {
        output::note(
            "tools that say they only read count as ones that write, so hosts ask before each call: trust = \"trusted\" in an entry believes its server; `import --trust` writes it into each that it adds",
        );
    }
}

/// Returns the servers of all hosts' files. A file that can't be read is told, and the others are.
fn sources(home: &Path, project: &Path, own: &[String]) -> Vec<Source> {
    let mut sources = Vec::new();
    for host in Host::ALL {
        for file in files(host, home, project) {
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    output::warn(format_args!("{}: {error}", file.display()));
                    continue;
                }
            };
            let around = Surroundings { file: &file, home, project, own, is_set };
            match toolgate_import::read(host, &text, around) {
                Ok(HostFile { servers, remarks }) => {
                    for remark in remarks {
                        output::note(format_args!("{}: {remark}", file.display()));
                    }
                    let source = |server| Source { server, file: file.clone() };
                    sources.extend(servers.into_iter().map(source));
                }
                Err(error) => output::warn(format_args!("{}: {error}", file.display())),
            }
        }
    }
    sources
}

/// Returns true for a variable that a server can be given.
pub(super) fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok()
}

fn row(source: &Source) -> Vec<String> {
    let file = source.file.display();
    let file = match &source.server.project {
        Some(project) => format!("{file} ({project})"),
        None => file.to_string(),
    };
    vec![source.server.name.clone(), source.server.place.shown(), file]
}

/// Returns the gateway's file with entries for the servers that it does not have. An entry that the gateway would refuse is told
/// and left out, since it would keep the others from starting.
fn extended(import: &Import, has: &Config, text: &str, found: &[FoundServer]) -> Extension {
    let is_new = |server: &&FoundServer| !has.server.values().any(|known| is_at(known, server));
    let fresh: Vec<FoundServer> = found.iter().filter(is_new).cloned().collect();
    let taken: Vec<String> = has.server.keys().cloned().collect();
    let mut extension = Extension {
        text: text.to_owned(),
        count: 0,
        secrets: Vec::new(),
        waiting: Vec::new(),
        withheld: Vec::new(),
    };
    for entry in entries(&fresh, &taken) {
        match waiting(&entry, &fresh, has) {
            Ok(lines) => extension.waiting.extend(lines),
            Err(problem) => {
                output::warn(format_args!("{} is left out: {problem}", entry.name));
                continue;
            }
        }
        let new = &mut extension.text;
        if !new.is_empty() {
            new.push_str(if new.ends_with('\n') { "\n" } else { "\n\n" });
        }
        new.push_str(&entry.text);
        if import.trust {
            new.push_str("trust = \"trusted\"\n");
        }
        let secrets = entry.secrets.into_iter();
        for secret in secrets {
            if !extension.secrets.contains(&secret) {
                extension.secrets.push(secret);
            }
        }
        extension.count += 1;
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    extension.withheld = SURROUNDINGS
        .into_iter()
        .filter(|name| is_set(name) && fresh.iter().any(|server| lacks(server, name)))
        .collect();
    extension
}

/// Returns lines for people on what a new entry waits for, and what the host would have put in its place.
///
/// # Errors
/// The problem of an entry that makes no sense to the gateway.
fn waiting(
    entry: &GatewayEntry,
    found: &[FoundServer],
    has: &Config,
) -> Result<Vec<String>, String> {
    let config = Config::parse(&entry.text, Path::new(&entry.name));
    let mut config = config.map_err(|error| error.to_string())?;
    config.gateway = has.gateway.clone();
    config.entries().map_err(|error| error.to_string())?;
    let mut lines: Vec<String> = Vec::new();
    let waiting = config.waiting();
    let files = waiting.values().flatten().filter(|missing| missing.variable().is_none());
    lines.extend(files.map(|missing| format!("{} waits: {}", entry.name, missing.remedy())));
    let variables = waiting.values().flatten().filter_map(|missing| missing.variable());
    let is_told = |variable: &&str| entry.secrets.iter().any(|secret| secret == variable);
    for variable in variables.filter(|variable| !is_told(variable)) {
        let asked = found.iter().flat_map(|server| &server.asked);
        let meaning = asked.filter(|asked| asked.variable == variable).map(|asked| &asked.meaning);
        let meaning = meaning.map(|meaning| format!(" ({meaning})")).next().unwrap_or_default();
        let line = format!(
            "{} waits until {variable} is set{meaning}: export {variable}=... where the gateway starts, or write \"file:PATH\" in its place",
            entry.name
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Returns whether a program does not get a variable.
fn lacks(server: &FoundServer, variable: &str) -> bool {
    matches!(&server.place, Place::Command { env, .. } if !env.contains_key(variable))
}

/// Returns whether an entry of the gateway's file starts or reaches the same as a host's.
pub(super) fn is_at(known: &toolgate_mcp::ServerConfig, server: &FoundServer) -> bool {
    match &server.place {
        Place::Command { words, cwd, .. } => known.command == *words && known.cwd == *cwd,
        Place::Url { url, .. } => known.url.as_ref() == Some(url),
    }
}
