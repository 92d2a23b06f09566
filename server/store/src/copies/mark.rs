//! Mark of the last change that a replica had followed in the shared store, and the time of it, in a file beside the
//! copies. The next process uses it to judge its copies while the store can't be asked.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::Sequence;

/// Name of the file in the data directory.
const NAME: &str = "store-followed";

/// Progress of a previous process in following the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedMark {
    /// Number of the last change that the process had followed.
    pub sequence: Sequence,
    /// Time since the process last was up to date.
    pub age: Duration,
}

/// Reads the mark of a previous process; `None` if there is none, or if its time is in the future because a clock was
/// set back.
pub(super) fn read(data_directory: &Path) -> Option<FollowedMark> {
    let path = data_directory.join(NAME);
    let sequence = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
    let written = path.metadata().ok()?.modified().ok()?;
    let age = SystemTime::now().duration_since(written).ok()?;
    Some(FollowedMark { sequence, age })
}

/// Records that the replica is up to date now. Blocks on the file system.
pub(super) fn write(data_directory: &Path, sequence: Sequence) -> io::Result<()> {
    let path = data_directory.join(NAME);
    let draft = path.with_extension("draft");
    fs::write(&draft, sequence.to_string())?;
    fs::rename(&draft, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_how_far_and_when() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path()), None);
        write(folder.path(), 41).expect("written");
        write(folder.path(), 42).expect("written");
        let mark = read(folder.path()).expect("a mark");
        assert_eq!(mark.sequence, 42);
        let file = fs::File::options().write(true).open(folder.path().join(NAME)).expect("a file");
        let hour = Duration::from_secs(3_600);
        file.set_modified(SystemTime::now() - hour).expect("set");
        assert!(read(folder.path()).is_some_and(|mark| mark.age >= hour));
        file.set_modified(SystemTime::now() + hour).expect("set");
        assert_eq!(read(folder.path()), None, "a clock that was set back");
        fs::write(folder.path().join(NAME), "odd").expect("written");
        assert_eq!(read(folder.path()), None);
    }
}
