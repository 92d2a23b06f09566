//! How a process enters its sandbox.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
    path_beneath_rules,
};

use super::{Sandbox, SandboxError};

/// Files and folders of the system that programs need. Those that are not there are left out.
const SYSTEM: [&str; 12] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt",
    "/proc",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
];

/// Devices that programs read and write.
const DEVICES: [&str; 6] =
    ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// Version whose rules for files are asked for: the first that covers the length of files.
const FILES: ABI = ABI::V3;

/// Version that has rules for TCP, and the one that keeps signals and abstract sockets within the sandbox.
const NETWORK: ABI = ABI::V4;
const SCOPES: ABI = ABI::V6;

/// Holds this process, and those that it starts, to a sandbox.
pub(super) fn enter(sandbox: &Sandbox) -> Result<(), SandboxError> {
    let level =
        if sandbox.best_effort { CompatLevel::BestEffort } else { CompatLevel::HardRequirement };
    let unsupported = |error: landlock::RulesetError| SandboxError::Unsupported(error.to_string());
    let rules = rules(sandbox, level).map_err(unsupported)?;
    let rules = rules
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(FILES)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, AccessFs::from_all(FILES))))
        .map_err(unsupported)?;
    let rules = with_paths(rules, &sandbox.read, AccessFs::from_read(FILES))?;
    let rules = with_paths(rules, &sandbox.write, AccessFs::from_all(FILES))?;
    rules.restrict_self().map_err(unsupported)?;
    Ok(())
}

fn rules(sandbox: &Sandbox, level: CompatLevel) -> Result<RulesetCreated, landlock::RulesetError> {
    let files = AccessFs::from_all(FILES);
    let mut rules = Ruleset::default().set_compatibility(level).handle_access(files)?;
    if !sandbox.network {
        rules = rules.handle_access(AccessNet::from_all(NETWORK))?;
    }
    let rules = rules.set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(SCOPES))?;
    rules.set_compatibility(level).create()
}

fn with_paths(
    mut rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    for path in paths {
        let failed = |source| SandboxError::Path { path: path.clone(), source };
        let is_file = path.metadata().map_err(failed)?.is_file();
        let access = if is_file { access & AccessFs::from_file(FILES) } else { access };
        let opened = opened(path).map_err(failed)?;
        let added = rules.add_rule(PathBeneath::new(opened, access));
        rules = added.map_err(|error| SandboxError::Unsupported(error.to_string()))?;
    }
    Ok(rules)
}

fn opened(path: &Path) -> io::Result<PathFd> {
    PathFd::new(path).map_err(|error| match error {
        PathFdError::OpenCall { source, .. } => source,
        error => io::Error::other(error.to_string()),
    })
}
