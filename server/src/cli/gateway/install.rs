//! `toolgate gateway install`: the gateway's entry in a host's file.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use toolgate_import::{ENTRY, FoundServer, Host, HostFile, Scope, Surroundings, Target};

use super::super::failure::{Exit, Failure};
use super::super::output;
use super::files::{own_urls, read_own};
use super::import::{is_at, is_set};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Args)]
pub(super) struct Install {
    /// The host.
    #[arg(value_enum)]
    host: HostName,
    /// URL of the gateway. Default: http://127.0.0.1:7080/mcp, with the host's limit of results.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The gateway's file, for hosts that start the gateway.
    #[arg(long, default_value = super::DEFAULT_FILE, value_name = "FILE")]
    config: PathBuf,
    /// Reach of the entry: every project of yours, or the current one (claude-code).
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeName,
    /// Take the entry out.
    #[arg(long)]
    remove: bool,
    /// Take out the host's own entries of servers that the gateway's file has as well, by name, command or URL.
    #[arg(long, conflicts_with = "remove")]
    replace: bool,
    /// Show the change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HostName {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    GeminiCli,
    Opencode,
    Zed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    User,
    Project,
}

impl From<HostName> for Host {
    fn from(name: HostName) -> Self {
        match name {
            HostName::ClaudeCode => Self::ClaudeCode,
            HostName::ClaudeDesktop => Self::ClaudeDesktop,
            HostName::Cursor => Self::Cursor,
            HostName::Vscode => Self::Vscode,
            HostName::Codex => Self::Codex,
            HostName::GeminiCli => Self::GeminiCli,
            HostName::Opencode => Self::Opencode,
            HostName::Zed => Self::Zed,
        }
    }
}

pub(super) fn run(install: &Install) -> Result<Exit, Failure> {
    let host = Host::from(install.host);
    let scope = match install.scope {
        ScopeName::Project if host != Host::ClaudeCode => {
            return Err(Failure::usage("--scope project is for claude-code alone"));
        }
        ScopeName::Project => Scope::Project,
        ScopeName::User => Scope::User,
    };
    let home = std::env::home_dir().ok_or_else(|| Failure::usage("HOME is not set"))?;
    let path = written_file(host.file(&home, &std::env::current_dir()?, scope));
    let old = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::new(format!("{}: {error}", path.display()))),
    };
    let text = old.as_deref().unwrap_or_default();
    let mut new = edited(install, host, &path, text)?;
    let doubles = doubles(install, host, &path, text)?;
    if install.replace {
        new = without(host, &path, new, &doubles)?;
    }
    let is_changed = new != text;
    if is_changed {
        output::print(&difference(&path, text, &new))?;
    } else {
        output::note(format_args!("{} needs no change", path.display()));
    }
    if !install.replace && !doubles.is_empty() {
        output::note(format_args!(
            "still in this file: {}; the host starts them itself as well. --replace takes them out",
            doubles.join(", ")
        ));
    }
    if !is_changed || install.dry_run {
        return Ok(Exit::Done);
    }
    if !install.yes && !agreed()? {
        return Err(Failure::usage("nothing was written"));
    }
    write(&path, old.as_deref(), &new)
        .map_err(|error| Failure::new(format!("{} can't be written: {error}", path.display())))?;
    output::note(format_args!("wrote {}", path.display()));
    Ok(Exit::Done)
}

/// Returns the file, or the one with comments beside it (`.jsonc`) where only that is there.
fn written_file(file: PathBuf) -> PathBuf {
    let commented = file.with_extension("jsonc");
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    if is_json && !file.exists() && commented.exists() { commented } else { file }
}

fn edited(install: &Install, host: Host, path: &Path, text: &str) -> Result<String, Failure> {
    let target = target(install, host)?;
    let outcome = if install.remove { host.remove(text) } else { host.install(text, &target) };
    outcome.map_err(|error| {
        let verb = if install.remove { "remove from" } else { "add to" };
        Failure::usage(format!(
            "{}: {error}; {verb} `{}` by hand: {ENTRY}: {}",
            path.display(),
            host.section(),
            host.entry(&target)
        ))
    })
}

/// Returns the names of the host's own entries of servers that the gateway's file has as well.
fn doubles(install: &Install, host: Host, path: &Path, text: &str) -> Result<Vec<String>, Failure> {
    if install.remove {
        return Ok(Vec::new());
    }
    let own = match read_own(&install.config) {
        Ok(config) => config,
        Err(failure) if install.replace => return Err(failure),
        Err(_) => return Ok(Vec::new()),
    };
    let home = std::env::home_dir().unwrap_or_default();
    let project = std::env::current_dir()?;
    let urls = own_urls(&own);
    let around = Surroundings { file: path, home: &home, project: &project, own: &urls, is_set };
    let HostFile { servers, .. } = toolgate_import::read(host, text, around).unwrap_or_default();
    let is_double = |server: &FoundServer| {
        let mut known = own.server.values();
        let is_known = own.server.contains_key(&server.name);
        server.project.is_none() && (is_known || known.any(|known| is_at(known, server)))
    };
    Ok(servers.into_iter().filter(is_double).map(|server| server.name).collect())
}

/// Returns the text without these servers.
fn without(
    host: Host,
    path: &Path,
    mut text: String,
    servers: &[String],
) -> Result<String, Failure> {
    for server in servers {
        text = host.take_out(&text, server).map_err(|error| {
            Failure::usage(format!("{}: {error}; take {server} out by hand", path.display()))
        })?;
    }
    Ok(text)
}

fn target(install: &Install, host: Host) -> Result<Target, Failure> {
    let limit = host.result_limit().map_or_else(String::new, |limit| format!("?limit={limit}"));
    let url = install.url.clone();
    Ok(Target {
        url: url.unwrap_or_else(|| format!("http://127.0.0.1:7080/mcp{limit}")),
        program: std::env::current_exe()?.display().to_string(),
        config: std::path::absolute(&install.config)?.display().to_string(),
    })
}

/// The answer of the user on the terminal.
pub(super) fn agreed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nothing was written: --yes writes without a terminal"));
    }
    output::note("write it? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes the file in one step, with the mode it had, and keeps a copy of the old text beside it.
pub(super) fn write(path: &Path, old: Option<&str>, new: &str) -> io::Result<()> {
    // The file that a link names is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if let Some(old) = old {
        draft(&beside(path, "before-toolgate"), path, old)?;
    }
    let new_file = beside(path, "toolgate-new");
    draft(&new_file, path, new)?;
    fs::rename(new_file, path)
}

/// Writes a file that nobody else may read before it has the mode of `like`.
fn draft(path: &Path, like: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(like) {
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

/// The change as a unified diff of one hunk.
pub(super) fn difference(path: &Path, old: &str, new: &str) -> String {
    let before: Vec<&str> = old.lines().collect();
    let after: Vec<&str> = new.lines().collect();
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before[same..].iter().rev().zip(after[same..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(CONTEXT);
    let removed = &before[same..before.len() - tail];
    let added = &after[same..after.len() - tail];
    let following = &after[after.len() - tail..][..tail.min(CONTEXT)];
    let around = same - start + following.len();
    let name = path.display();
    let range = |changed: usize| {
        let count = around + changed;
        format!("{},{count}", if count == 0 { start } else { start + 1 })
    };
    let hunk = format!("@@ -{} +{} @@", range(removed.len()), range(added.len()));
    let mut text = format!("--- {name}\n+++ {name}\n{hunk}\n");
    let lines = (before[start..same].iter().map(|line| (' ', line)))
        .chain(removed.iter().map(|line| ('-', line)))
        .chain(added.iter().map(|line| ('+', line)))
        .chain(following.iter().map(|line| (' ', line)));
    for (sign, line) in lines {
        text.push_str(&format!("{sign}{line}\n"));
    }
    text
}
