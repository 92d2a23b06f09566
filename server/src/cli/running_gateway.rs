//! Place of the routing plane within a gateway that runs on this machine, which the gateway writes into its data directory for
//! the commands that ask a plane. Only the user of the gateway can read it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolgate_client::{ClientOptions, Credentials};

/// Name of the file in the data directory.
const FILE: &str = "running.json";

/// Place of the routing plane within a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunningGateway {
    /// URL of the plane.
    pub(super) plane: String,
    /// Tenant whose catalog it is where a command names none.
    pub(super) tenant: String,
    /// File with a key of the plane; `None` for a plane without authentication.
    pub(super) key_file: Option<PathBuf>,
}

/// File of a gateway that runs, locked. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Announced {
    path: PathBuf,
    /// Says that the gateway runs: the lock ends with the process, even if that is killed.
    _lock: File,
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A file that is left is not locked, and is not read.
        let _gone = fs::remove_file(&self.path);
    }
}

impl RunningGateway {
    /// Writes the file into a data directory.
    ///
    /// # Errors
    /// The file can't be written.
    pub(super) fn announce(&self, folder: &Path) -> io::Result<Announced> {
        let path = folder.join(FILE);
        let new = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        // Before others find it.
        file.try_lock()?;
        fs::rename(&new, &path)?;
        Ok(Announced { path, _lock: file })
    }

    /// Reads the file of a data directory; `None` if no gateway runs there. The file of one that was killed is left aside: its
    /// port may be another process's by now, which must not get the key.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let mut file = File::open(folder.join(FILE)).ok()?;
        // Shared, so that two commands do not take each other for a gateway.
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Adds the key and the tenant to options that have none.
    pub(super) fn add_to(&self, mut options: ClientOptions, has_key: bool) -> ClientOptions {
        if let Some(path) = self.key_file.as_ref().filter(|_| !has_key)
            && let Ok(key) = fs::read_to_string(path)
        {
            options.credentials = Credentials::api_key(key.trim());
        }
        if options.tenant.is_empty() {
            self.tenant.clone_into(&mut options.tenant);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_found_while_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let running = RunningGateway {
            plane: "http://127.0.0.1:1".to_owned(),
            tenant: "acme".to_owned(),
            key_file: None,
        };
        assert_eq!(RunningGateway::read(folder.path()), None);
        let announced = running.announce(folder.path()).expect("a file");
        assert_eq!(RunningGateway::read(folder.path()), Some(running.clone()));
        assert_eq!(running.add_to(ClientOptions::default(), false).tenant, "acme");
        let named = ClientOptions { tenant: "umbrella".to_owned(), ..Default::default() };
        assert_eq!(running.add_to(named, false).tenant, "umbrella");
        drop(announced);
        assert_eq!(RunningGateway::read(folder.path()), None);
    }

    #[test]
    fn the_file_of_a_gateway_that_was_killed_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let running = RunningGateway {
            plane: "http://127.0.0.1:1".to_owned(),
            tenant: "acme".to_owned(),
            key_file: None,
        };
        let left = serde_json::to_vec(&running).expect("JSON");
        fs::write(folder.path().join(FILE), left).expect("a file");
        assert_eq!(RunningGateway::read(folder.path()), None);
        let _announced = running.announce(folder.path()).expect("a file");
        assert_eq!(RunningGateway::read(folder.path()), Some(running));
    }
}
