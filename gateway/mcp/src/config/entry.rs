//! A server of the file as the fleet runs it, with the values of its secrets.

use std::path::PathBuf;

use toolgate_upstream::{Entry, Limits, Upstream, UpstreamError};

use super::waiting::{FileVariables, waits_for};
use super::{
    AuthMethod, Config, ConfigError, EntryFile, ServerConfig, authorization, env_file, per_user,
    sandbox, values,
};

/// Largest number of characters of a server's name, as the catalog has it.
const NAME_MAX: usize = 64;

/// URL of a server whose own URL lacks a variable. It is never asked.
const UNSET_URL: &str = "https://unset.invalid";

impl Config {
    /// Returns a server to run, or to keep waiting for what its values lack.
    ///
    /// # Errors
    /// Same errors as [`Self::entries`].
    pub(crate) fn entry(&self, name: &str, server: &ServerConfig) -> Result<Entry, ConfigError> {
        self.entry_of(name, server, server.file_variables(env_file::read))
    }

    /// Returns what [`Self::entry`] does, with a file of variables that has been read: once, since another time it may be another.
    pub(super) fn entry_of(
        &self,
        name: &str,
        server: &ServerConfig,
        file: FileVariables,
    ) -> Result<Entry, ConfigError> {
        let wrong = |problem: &str| ConfigError::server(name, problem);
        if !is_server_name(name) {
            return Err(wrong("the name must have 1 to 64 of A-Z a-z 0-9 _ -, and no \"__\""));
        }
        // Before the values are read: a file that comes amid this is not there yet, and nothing is started with a text in its place.
        let waits_for = waits_for(&server.missing_beside(&file));
        let upstream = match (&server.command[..], &server.url) {
            ([written, ..], None) => {
                let words: Vec<String> =
                    server.command.iter().map(|word| server.text(word)).collect();
                if let Some(problem) = self.program_problem(server, written, &words[0]) {
                    return Err(wrong(&problem));
                }
                let upstream = process(name, server, &words, file)?;
                match self.path_problem(server, &upstream) {
                    Some(problem) => return Err(wrong(&problem)),
                    None => upstream,
                }
            }
            ([], Some(url)) => endpoint(name, server, url, &self.gateway.auth.methods)?,
            _ => return Err(wrong("needs either `command` or `url`")),
        };
        let default = Limits::default();
        let limits = Limits {
            concurrency: server.concurrency.unwrap_or(default.concurrency),
            call_timeout: self.gateway.call_timeout,
            pauses: server.restart.pauses().map_err(wrong)?,
            start: per_user::start(server, &self.gateway.auth.methods)
                .map_err(|told| wrong(&told))?,
            own_connections: server.own_connections(),
            ..default
        };
        if limits.concurrency == 0 {
            return Err(wrong("`concurrency` must be at least 1"));
        }
        Ok(Entry { name: name.to_owned(), upstream, limits, waits_for })
    }

    /// Returns what is wrong with the program of a server, as it is written and as it is started. One that lacks a variable
    /// waits, and is checked once it is there.
    fn program_problem(
        &self,
        server: &ServerConfig,
        written: &str,
        program: &str,
    ) -> Option<String> {
        if values::has_file(written, server.file) {
            return Some(format!(
                "the program {written:?} can't be the text of a file: name it in `command`, or take a variable"
            ));
        }
        let is_known = values::lacks_of_text(written, server.file).is_empty();
        if !is_known || self.gateway.spawn.allows(program) {
            return None;
        }
        let allowed = self.gateway.spawn.shown();
        let remedy = match server.file {
            EntryFile::Gateway => "add it there, or leave the server out",
            EntryFile::Host => {
                "add it there, in the gateway's file, or take the server out of this file"
            }
        };
        Some(format!(
            "`command` starts {program:?}, which is not among gateway.spawn.allow ({allowed}): {remedy}"
        ))
    }

    /// Returns what is wrong with the environment of a server of a host's file: a program that is allowed by its name is the one
    /// that the gateway's own `PATH` finds.
    fn path_problem(&self, server: &ServerConfig, upstream: &Upstream) -> Option<String> {
        let Upstream::Process(launch) = upstream else { return None };
        let is_by_name = !launch.program.contains('/');
        if server.file != EntryFile::Host || self.gateway.spawn.allow.is_none() || !is_by_name {
            return None;
        }
        let program = &launch.program;
        let is_own = launch.environment.get("PATH").cloned() == std::env::var("PATH").ok();
        (!is_own).then(|| {
            format!(
                "`env` sets PATH, so that {program:?} may be another program than the one that gateway.spawn.allow names: leave PATH out, or write the program's whole path in `command` and in gateway.spawn.allow"
            )
        })
    }
}

fn process(
    name: &str,
    server: &ServerConfig,
    words: &[String],
    file: FileVariables,
) -> Result<Upstream, ConfigError> {
    let wrong = |problem: String| ConfigError::server(name, &problem);
    if !server.headers.is_empty() {
        return Err(wrong("`headers` are for a `url`; a `command` has `env`".to_owned()));
    }
    if server.auth.is_some() || server.oauth.is_some() {
        let key = if server.auth.is_some() { "auth" } else { "oauth" };
        return Err(wrong(format!("`{key}` is for a `url`; a `command` has `env`")));
    }
    let words = shlex_joined(words).ok_or_else(|| {
        wrong("a word of `command` has a character that no argument can carry".to_owned())
    })?;
    let mut upstream = Upstream::parse(&words).map_err(|error| wrong(error.to_string()))?;
    if let Upstream::Process(launch) = &mut upstream {
        // What can't be read is waited for.
        launch.environment.extend(file.variables);
        for (variable, value) in &server.env {
            launch.environment.insert(variable.clone(), server.value(value));
        }
        launch.folder = server.cwd.as_ref().map(|cwd| folder(name, server, cwd)).transpose()?;
        launch.sandbox = sandbox::sandbox(server).map_err(wrong)?;
    }
    Ok(upstream)
}

impl ServerConfig {
    /// Returns a value of `env`, `headers`, `cwd` or `homes`, with a text in the place of what is missing.
    pub(super) fn value(&self, value: &str) -> String {
        values::value(value, self.file)
    }

    /// Returns a word of the command, the URL, or the name of a file, with a text in the place of what is missing.
    pub(super) fn text(&self, text: &str) -> String {
        values::text(text, self.file)
    }
}

/// Returns the folder that a program starts in.
fn folder(name: &str, server: &ServerConfig, cwd: &str) -> Result<PathBuf, ConfigError> {
    let folder = PathBuf::from(server.value(cwd));
    let is_known = values::lacks_of_value(cwd, server.file).is_empty();
    if folder.is_dir() || !is_known {
        return Ok(folder);
    }
    let problem = format!("`cwd` names no folder: {}", folder.display());
    Err(ConfigError::server(name, &problem))
}

fn endpoint(
    name: &str,
    server: &ServerConfig,
    url: &str,
    methods: &[AuthMethod],
) -> Result<Upstream, ConfigError> {
    let wrong = |problem: String| ConfigError::server(name, &problem);
    if !server.env.is_empty() || server.env_file.is_some() || server.cwd.is_some() {
        let problem = "`env`, `env_file` and `cwd` are for a `command`; a `url` has `headers`";
        return Err(wrong(problem.to_owned()));
    }
    if server.sandbox.is_some() {
        return Err(wrong("`sandbox` is for a `command`: a `url` starts nothing".to_owned()));
    }
    let told = |error: UpstreamError| wrong(error.to_string());
    let is_known = values::lacks_of_text(url, server.file).is_empty();
    let url = if is_known { server.text(url) } else { UNSET_URL.to_owned() };
    let mut upstream = Upstream::parse(&url).map_err(told)?;
    match &mut upstream {
        Upstream::Process(_) => {
            return Err(wrong("`url` must begin with https://, or http:// on this machine".into()));
        }
        Upstream::Http(endpoint) => {
            for (header, value) in &server.headers {
                endpoint.add_header(header, &server.value(value)).map_err(told)?;
            }
            endpoint.authorization = authorization::authorization(name, server, methods)?;
        }
    }
    Ok(upstream)
}

/// Returns a command line that splits into these words.
fn shlex_joined(words: &[String]) -> Option<String> {
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

fn is_server_name(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_right) && !name.contains("__")
}
