//! Core files, which would hold the keys of others that go through a process.

/// Has the kernel write no core file of this process, and keep its memory from other processes of its user. Programs that it
/// starts are as they would be.
#[cfg(target_os = "linux")]
pub(super) fn write_none() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        super::output::warn(format_args!("a core file of this process may hold keys: {error}"));
    }
}

/// Does nothing: other systems write core files to those alone who ask for them.
#[cfg(not(target_os = "linux"))]
pub(super) fn write_none() {}
