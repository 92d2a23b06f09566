//! Sandboxes of servers' processes: which files they may use, and whether they may use TCP. The kernel holds them to it (Landlock,
//! Linux). A process enters its sandbox by a helper, which becomes the program.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod entering;

/// Sandbox of a process, and of those that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Files and folders that it may read and execute, beside those of the system.
    pub read: Vec<PathBuf>,
    /// The same, which it may change as well.
    pub write: Vec<PathBuf>,
    /// True if it may use TCP.
    pub network: bool,
    /// True if it starts with as much of this as the kernel can do, which may be nothing.
    pub best_effort: bool,
}

/// Program that enters a sandbox and becomes another: this one, with the arguments that [`run_sandboxed`] takes behind its own.
#[derive(Debug, Clone)]
pub struct SandboxHelper {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before those that say what is to be done.
    pub arguments: Vec<OsString>,
}

/// Reason for which a process did not enter its sandbox, or did not become the program.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The helper's arguments make no sense.
    #[error("a sandbox and a program are needed")]
    Arguments,
    /// A file or folder of the sandbox can't be opened.
    #[error("the sandbox can't have {}: {source}", path.display())]
    Path {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The system has no such sandbox.
    #[error(
        "this system can't do what the sandbox asks for ({0}): files need Linux 6.2 with Landlock, `network = false` needs 6.7; `best_effort = true` starts the server with less"
    )]
    Unsupported(String),
    /// The program can't be executed.
    #[error(
        "{} can't be started within its sandbox: {source}: name the folders of programs in `read`", program.display()
    )]
    Program {
        /// The program.
        program: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl SandboxHelper {
    /// Returns the arguments with which the helper enters a sandbox and becomes a program with these arguments.
    pub(crate) fn arguments_for(
        &self,
        sandbox: &Sandbox,
        program: &str,
        arguments: &[String],
    ) -> Vec<OsString> {
        let sandbox = serde_json::to_string(sandbox).expect("paths of a file in UTF-8 are JSON");
        let mut all = self.arguments.clone();
        all.extend([sandbox.into(), program.into()]);
        all.extend(arguments.iter().map(OsString::from));
        all
    }
}

/// Enters the sandbox that the first argument says, and becomes the program of the second with the others as its arguments. Returns
/// only if that fails.
#[must_use]
pub fn run_sandboxed(arguments: Vec<OsString>) -> SandboxError {
    let mut arguments = arguments.into_iter();
    let sandbox = arguments.next().and_then(|text| serde_json::from_str(text.to_str()?).ok());
    let Some(sandbox) = sandbox else { return SandboxError::Arguments };
    let Some(program) = arguments.next() else { return SandboxError::Arguments };
    run(&sandbox, program, arguments)
}

#[cfg(target_os = "linux")]
fn run(
    sandbox: &Sandbox,
    program: OsString,
    arguments: impl Iterator<Item = OsString>,
) -> SandboxError {
    use std::os::unix::process::CommandExt as _;
    if let Err(error) = entering::enter(sandbox) {
        return error;
    }
    let source = std::process::Command::new(&program).args(arguments).exec();
    SandboxError::Program { program: program.into(), source }
}

#[cfg(not(target_os = "linux"))]
fn run(
    _sandbox: &Sandbox,
    _program: OsString,
    _arguments: impl Iterator<Item = OsString>,
) -> SandboxError {
    SandboxError::Unsupported("it is no Linux".to_owned())
}
