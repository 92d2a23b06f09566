//! `toolgate completions`: a script that completes this command line in a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use super::failure::{Exit, Failure};
use super::output;

const EXAMPLES: &str = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions zsh > \"${fpath[1]}/_toolgate\"
  toolgate completions fish > ~/.config/fish/completions/toolgate.fish";

/// Print a shell's completion script.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(completions: &Completions, command: &mut Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, command, "toolgate", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
