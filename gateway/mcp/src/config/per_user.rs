//! Servers that have a process for each principal: `start = "per-user"`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_upstream::{PerUser, Start};

use super::{AuthMethod, ServerConfig, StartConfig};

/// Processes at a time: the default, and the bounds of what an entry says.
const PROCESSES: usize = 32;
const PROCESSES_MAX: usize = 256;

/// Part of all processes that is the most of one principal: one in so many, and at least one.
const SHARE: usize = 4;

/// Silence after which a process ends: the default, and the bounds of what an entry says.
const IDLE: Duration = Duration::from_secs(5 * 60);
const IDLE_BOUNDS: RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(24 * 60 * 60);

/// Returns when a server is started, and for whom.
///
/// # Errors
/// The problem of its keys.
pub(super) fn start(server: &ServerConfig, methods: &[AuthMethod]) -> Result<Start, String> {
    if server.start != StartConfig::PerUser {
        let unused = [
            ("processes", server.processes.is_some()),
            ("idle", server.idle.is_some()),
            ("homes", server.homes.is_some()),
        ];
        if let Some((key, _)) = unused.into_iter().find(|(_, is_set)| *is_set) {
            return Err(format!("`{key}` is for `start = \"per-user\"`"));
        }
        return Ok(match server.start {
            StartConfig::Lazy => Start::Lazy,
            StartConfig::Eager | StartConfig::PerUser => Start::Eager,
        });
    }
    if server.url.is_some() {
        let told =
            "`start = \"per-user\"` is for a `command`; a `url` has `auth = \"oauth-per-user\"`";
        return Err(told.to_owned());
    }
    if methods.is_empty() {
        let told = "`start = \"per-user\"` needs gateway.auth.methods: without them nobody is told from anybody else";
        return Err(told.to_owned());
    }
    let processes = server.processes.unwrap_or(PROCESSES);
    if !(1..=PROCESSES_MAX).contains(&processes) {
        return Err(format!("`processes` must be from 1 to {PROCESSES_MAX}"));
    }
    let idle = server.idle.unwrap_or(IDLE);
    if !IDLE_BOUNDS.contains(&idle) {
        return Err("`idle` must be from 10s to 1440m".to_owned());
    }
    if server.homes.is_some() && server.env.contains_key("HOME") {
        return Err("`homes` and HOME in `env` are two homes: leave one out".to_owned());
    }
    let homes = server.homes.as_ref().map(|homes| PathBuf::from(server.value(homes)));
    if homes.as_ref().is_some_and(|homes| homes.as_os_str().is_empty()) {
        return Err("`homes` names no folder".to_owned());
    }
    let of_principal = (processes / SHARE).max(1);
    Ok(Start::PerUser(PerUser { processes, of_principal, idle, homes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &str, methods: &[AuthMethod]) -> Result<Start, String> {
        let server: ServerConfig = toml::from_str(keys).map_err(|error| error.to_string())?;
        start(&server, methods)
    }

    #[test]
    fn a_server_has_a_process_for_each_principal_within_bounds() {
        let keys = "command = [\"x\"]\nstart = \"per-user\"\n";
        let methods = [AuthMethod::ApiKey];
        let of = |more: &str| of(&format!("{keys}{more}"), &methods);
        let usual = PerUser { processes: 32, of_principal: 8, idle: IDLE, homes: None };
        assert_eq!(of(""), Ok(Start::PerUser(usual)));
        let few = PerUser {
            processes: 3,
            of_principal: 1,
            idle: Duration::from_secs(60),
            homes: Some(PathBuf::from("/srv/homes")),
        };
        let set = "processes = 3\nidle = \"1m\"\nhomes = \"/srv/homes\"";
        assert_eq!(of(set), Ok(Start::PerUser(few)));
        for (more, told) in [
            ("processes = 0", "from 1 to 256"),
            ("processes = 257", "from 1 to 256"),
            ("idle = \"9s\"", "from 10s"),
            ("idle = \"1441m\"", "1440m"),
            ("homes = \"\"", "no folder"),
            ("homes = \"/a\"\nenv = { HOME = \"/b\" }", "two homes"),
        ] {
            let problem = of(more).expect_err(more);
            assert!(problem.contains(told), "{more}: {problem}");
        }
    }

    #[test]
    fn a_process_for_each_needs_a_process_and_principals() {
        let told = of("command = [\"x\"]\nstart = \"per-user\"", &[]).expect_err("no principals");
        assert!(told.contains("gateway.auth.methods"), "{told}");
        let url = "url = \"https://x\"\nstart = \"per-user\"";
        let told = of(url, &[AuthMethod::ApiKey]).expect_err("no process");
        assert!(told.contains("oauth-per-user"), "{told}");
        for key in ["processes = 1", "idle = \"1m\"", "homes = \"/a\""] {
            let told = of(&format!("command = [\"x\"]\n{key}"), &[]).expect_err(key);
            assert!(told.contains("per-user"), "{told}");
        }
    }
}
