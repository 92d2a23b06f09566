//! `toolgate gateway import`: servers out of hosts' files into the gateway's.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_import::{FoundServer, Host, Place, entries, files};
use toolgate_mcp::Config;

use super::super::failure::{Exit, Failure};
use super::super::output;
use super::super::table::{Column, render};
use super::super::text::counted;
use super::install::{agreed, difference, write};

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The gateway's file, which gets the servers that it does not have.
    #[arg(long, default_value = super::DEFAULT_FILE, value_name = "FILE")]
    config: PathBuf,
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
    /// Variables to set before the gateway starts.
    secrets: Vec<String>,
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
    let sources = sources(&home, &std::env::current_dir()?)?;
    if sources.is_empty() {
        output::note("no host's file names an MCP server");
        return Ok(Exit::Done);
    }
    output::print(&render(
        &[Column::Left("server"), Column::Left("starts or reaches"), Column::Left("file")],
        sources.iter().map(row),
    ))?;
    let old = match fs::read_to_string(&import.config) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Failure::new(format!("{}: {error}", import.config.display())));
        }
    };
    let text = old.as_deref().unwrap_or_default();
    let found: Vec<FoundServer> = sources.into_iter().map(|source| source.server).collect();
    let Extension { text: new, secrets, withheld } = extended(&import.config, text, &found)?;
    if new == text {
        output::note(format_args!("{} has all of them", import.config.display()));
        return Ok(Exit::Done);
    }
    output::print(&difference(&import.config, text, &new))?;
    if !secrets.is_empty() {
        output::warn(format_args!(
            "secrets are not copied: set {} before the gateway starts",
            secrets.join(", ")
        ));
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
    if import.dry_run {
        return Ok(Exit::Done);
    }
    if !import.yes && !agreed()? {
        return Err(Failure::usage("nothing was written"));
    }
    write(&import.config, old.as_deref(), &new).map_err(|error| {
        Failure::new(format!("{} can't be written: {error}", import.config.display()))
    })?;
    output::note(format_args!(
        "wrote {}; `toolgate gateway --config {}` serves it",
        import.config.display(),
        import.config.display()
    ));
    Ok(Exit::Done)
}

/// Returns the servers of all hosts' files. A file that can't be read is told, and the others are.
fn sources(home: &Path, project: &Path) -> Result<Vec<Source>, Failure> {
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
            match toolgate_import::read(host, &text, project) {
                Ok(servers) => {
                    let source = |server| Source { server, file: file.clone() };
                    sources.extend(servers.into_iter().map(source));
                }
                Err(error) => output::warn(format_args!("{}: {error}", file.display())),
            }
        }
    }
    Ok(sources)
}

fn row(source: &Source) -> Vec<String> {
    let place = match &source.server.place {
        Place::Command { words, .. } => words.join(" "),
        Place::Url { url, .. } => url.clone(),
    };
    vec![source.server.name.clone(), place, source.file.display().to_string()]
}

/// Returns the gateway's file with entries for the servers that it does not have.
fn extended(path: &Path, text: &str, found: &[FoundServer]) -> Result<Extension, Failure> {
    let has = Config::parse(text, path).map_err(|error| Failure::usage(error.to_string()))?;
    let is_new = |server: &&FoundServer| !has.server.values().any(|known| is_at(known, server));
    let fresh: Vec<FoundServer> = found.iter().filter(is_new).cloned().collect();
    let taken: Vec<String> = has.server.keys().cloned().collect();
    let mut new = text.to_owned();
    let mut secrets = Vec::new();
    let mut count = 0;
    for entry in entries(&fresh, &taken) {
        if !new.is_empty() {
            new.push_str(if new.ends_with('\n') { "\n" } else { "\n\n" });
        }
        new.push_str(&entry.text);
        secrets.extend(entry.secrets);
        count += 1;
    }
    if count > 0 {
        output::note(format_args!("{} to add", counted(count, "server")));
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let withheld = SURROUNDINGS
        .into_iter()
        .filter(|name| is_set(name) && fresh.iter().any(|server| lacks(server, name)))
        .collect();
    Ok(Extension { text: new, secrets, withheld })
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
