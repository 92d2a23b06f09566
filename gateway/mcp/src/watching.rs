//! Changes of the gateway's file while it runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Pause between two looks at the file. A change is taken once the file was the same twice, so that nobody reads half of what
/// an editor writes.
const LOOK: Duration = Duration::from_secs(1);

/// File that is looked at again and again.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    /// State of the file when it was taken last.
    taken: Option<State>,
}

/// Signs by which a change of a file is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl WatchedFile {
    /// Watches a file from now on.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), taken: state(path) }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the file as it is now.
    pub fn take(&mut self) {
        self.taken = state(&self.path);
    }

    /// Waits until the file has changed, and has been the same for a second. A file that is gone is waited for.
    pub async fn changed(&mut self) {
        let mut last = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = state(&self.path);
            if now.is_some() && now != self.taken && now == last {
                self.taken = now;
                return;
            }
            last = now;
        }
    }
}

fn state(path: &Path) -> Option<State> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(State { modified: metadata.modified().ok(), bytes: metadata.len() })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_is_taken_once_it_is_whole() {
        let path = std::env::temp_dir().join(format!("toolgate-watched-{}", std::process::id()));
        std::fs::write(&path, "a").expect("a file");
        let mut file = WatchedFile::new(&path);
        {
            let mut changed = Box::pin(file.changed());
            let mut look = async |text: Option<&str>| {
                match text {
                    Some(text) => std::fs::write(&path, text).expect("a file"),
                    None => std::fs::remove_file(&path).expect("a file"),
                }
                assert!(changed.as_mut().now_or_never().is_none());
                tokio::time::advance(LOOK).await;
                changed.as_mut().now_or_never().is_some()
            };
            assert!(!look(Some("ab")).await);
            assert!(!look(None).await);
            assert!(!look(Some("abc")).await);
        }
        file.changed().await;
        let quiet = tokio::time::timeout(LOOK * 10, file.changed()).await;
        std::fs::remove_file(&path).expect("a file");
        assert!(quiet.is_err());
    }
}
