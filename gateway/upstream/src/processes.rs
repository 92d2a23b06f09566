//! Processes of servers, told to whoever wants to know, and ended when this process is ended without a chance to do so.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::sandbox::SandboxHelper;

/// Process that was started for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedProcess<'a> {
    /// Name of the server in the fleet; empty outside of one.
    pub server: &'a str,
    /// Program, as its entry names it.
    pub program: &'a str,
    /// Identifier of the process, which is that of its group.
    pub id: u32,
    /// Principal whose own it is, as requests name it; `None` if it is nobody's.
    pub principal: Option<&'a str>,
}

type OnStart = dyn Fn(StartedProcess<'_>) + Send + Sync;

/// Those who are told of processes.
#[derive(Clone, Default)]
pub struct Processes {
    on_start: Option<Arc<OnStart>>,
    supervisor: Option<Arc<Supervisor>>,
    sandbox_helper: Option<Arc<SandboxHelper>>,
}

/// Helper process that outlives this one by a moment: it reads a pipe that nobody else writes, and when the pipe ends it kills
/// the process groups that it was told of and that have not ended. So no server is left behind a SIGKILL.
#[derive(Debug)]
pub struct Supervisor {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Pipe to the helper, which starts with the first process; `None` if it could not be started.
    pipe: OnceLock<Option<Mutex<ChildStdin>>>,
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}

impl Processes {
    /// Tells of each process that is started.
    #[must_use]
    pub fn with_start(self, told: impl Fn(StartedProcess<'_>) + Send + Sync + 'static) -> Self {
        Self { on_start: Some(Arc::new(told)), ..self }
    }

    /// Has process groups end with this process.
    #[must_use]
    pub fn with_supervisor(self, supervisor: Option<Arc<Supervisor>>) -> Self {
        Self { supervisor, ..self }
    }

    /// Sets the program by which processes enter their sandboxes. Without it, none starts that has one.
    #[must_use]
    pub fn with_sandbox_helper(self, helper: Option<SandboxHelper>) -> Self {
        Self { sandbox_helper: helper.map(Arc::new), ..self }
    }

    pub(crate) fn sandbox_helper(&self) -> Option<&SandboxHelper> {
        self.sandbox_helper.as_deref()
    }

    pub(crate) fn started(&self, process: StartedProcess<'_>) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.tell('+', process.id);
        }
        if let Some(told) = &self.on_start {
            told(process);
        }
    }

    pub(crate) fn ended(&self, group: u32) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.tell('-', group);
        }
    }
}

impl Supervisor {
    /// Creates a supervisor whose helper is this program with these arguments. It must run [`supervise`] on its standard input.
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Arc<Self> {
        Arc::new(Self { program, arguments, pipe: OnceLock::new() })
    }

    fn tell(&self, sign: char, group: u32) {
        let Some(pipe) = self.pipe.get_or_init(|| self.start()) else { return };
        if let Err(error) = writeln!(pipe.lock(), "{sign}{group}") {
            tracing::warn!(%error, "processes of servers are not supervised any more");
        }
    }

    fn start(&self) -> Option<Mutex<ChildStdin>> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Ctrl-C in a terminal ends this process's group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        match command.spawn() {
            Ok(mut helper) => helper.stdin.take().map(Mutex::new),
            Err(error) => {
                tracing::warn!(%error, "processes of servers are not supervised");
                None
            }
        }
    }
}

/// Reads which process groups there are (`+ID` and `-ID`, a line each) until the input ends, and kills those that are left.
///
/// # Errors
/// The input can't be read. The groups are killed all the same.
pub fn supervise(input: impl BufRead) -> io::Result<()> {
    let mut groups = HashSet::new();
    let read = read_groups(input, &mut groups);
    #[cfg(unix)]
    for group in groups.into_iter().filter_map(rustix::process::Pid::from_raw) {
        // It may be gone already.
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    read
}

fn read_groups(input: impl BufRead, groups: &mut HashSet<i32>) -> io::Result<()> {
    for line in input.lines() {
        let line = line?;
        // The group 1 is the system's, and none below it is one.
        let group = |id: &str| id.parse().ok().filter(|id: &i32| *id > 1);
        if let Some(group) = line.strip_prefix('+').and_then(group) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(group) {
            groups.remove(&group);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_that_have_not_ended() {
        let mut groups = HashSet::new();
        let lines = "+12\n+13\n-12\n+x\n+-5\n+0\n+1\nnoise\n+14\n";
        read_groups(lines.as_bytes(), &mut groups).expect("lines");
        assert_eq!(groups, HashSet::from([13, 14]));
    }

    #[test]
    fn who_listens_is_told_of_starts() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let processes = Processes::default()
            .with_start(move |process| kept.lock().push((process.server.to_owned(), process.id)));
        processes.started(StartedProcess { server: "git", program: "uvx", id: 7, principal: None });
        processes.ended(7);
        assert_eq!(*seen.lock(), [("git".to_owned(), 7)]);
    }
}
