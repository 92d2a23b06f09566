//! Memory of what this gateway registered, beyond its own life: a server that leaves its file while the gateway is down is taken
//! out of the catalog at the next start, and no server that somebody else registered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest as _, Sha256};

/// Tenant and name of a server in the catalog.
pub(crate) type Registration = (String, String);

/// Servers that a gateway registered with one plane.
#[derive(Debug, Default)]
pub struct Registrations {
    /// `None` if they are not kept.
    path: Option<PathBuf>,
    known: BTreeSet<Registration>,
    /// True if every server of the catalog is this gateway's, and it is not known yet which they are.
    takes_all: bool,
}

impl Registrations {
    /// Reads what a gateway registered with the plane of its own data directory. Without a file, all that is in the catalog is
    /// taken for the gateway's own if `owns_catalog`.
    #[must_use]
    pub fn of_own_plane(folder: &Path, owns_catalog: bool) -> Self {
        let path = folder.join("registered.json");
        let takes_all = owns_catalog && !path.exists();
        Self { takes_all, ..Self::read(path) }
    }

    /// Reads what a gateway of these files registered with a plane at this URL, which others may use too.
    #[must_use]
    pub fn of_plane(folder: &Path, url: &str, files: &[PathBuf]) -> Self {
        let mut identity = Sha256::new();
        identity.update(url);
        for file in files {
            let file = fs::canonicalize(file).unwrap_or_else(|_absent| file.clone());
            identity.update([0]);
            identity.update(file.as_os_str().as_encoded_bytes());
        }
        let identity = hex::encode(identity.finalize());
        Self::read(folder.join(format!("registered-{}.json", &identity[..16])))
    }

    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known = serde_json::from_str(&text).unwrap_or_default();
        Self { path: Some(path), known, takes_all: false }
    }

    /// Returns true if the servers of the catalog are to be [added](Self::add) first.
    pub(crate) fn takes_all(&self) -> bool {
        self.takes_all
    }

    /// Notes that all of the catalog's servers were added.
    pub(crate) fn has_taken_all(&mut self) {
        self.takes_all = false;
        self.save();
    }

    /// Returns the servers that were registered, before this start too.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Registration> {
        self.known.iter()
    }

    /// Notes a server that is registered.
    pub(crate) fn add(&mut self, server: Registration) {
        if self.known.insert(server) {
            self.save();
        }
    }

    /// Notes that a server is registered no more.
    pub(crate) fn remove(&mut self, server: &Registration) {
        if self.known.remove(server) {
            self.save();
        }
    }

    fn save(&self) {
        // While it is not known what is the gateway's, a file would say that it is.
        let Some(path) = self.path.as_ref().filter(|_| !self.takes_all) else { return };
        if let Err(error) = write(path, &self.known) {
            let path = path.display();
            tracing::warn!(%path, %error, "which servers are registered can't be written down");
        }
    }
}

/// Replaces a file, whole.
fn write(path: &Path, known: &BTreeSet<Registration>) -> io::Result<()> {
    let new = path.with_extension("new");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&new, serde_json::to_vec(known)?)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(registrations: &Registrations) -> Vec<&str> {
        registrations.all().map(|(_, server)| server.as_str()).collect()
    }

    fn of(server: &str) -> Registration {
        ("t".to_owned(), server.to_owned())
    }

    #[test]
    fn what_was_registered_is_known_after_the_end_of_the_gateway() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Registrations::of_own_plane(folder.path(), true);
        assert!(first.takes_all(), "an earlier version may have registered some");
        first.add(of("ghost"));
        first.add(of("notes"));
        assert!(Registrations::of_own_plane(folder.path(), true).takes_all(), "not all yet");
        first.has_taken_all();
        first.remove(&of("notes"));
        let second = Registrations::of_own_plane(folder.path(), true);
        assert!(!second.takes_all());
        assert_eq!(names(&second), ["ghost"]);
        assert!(!Registrations::of_own_plane(&folder.path().join("other"), false).takes_all());
    }

    #[test]
    fn gateways_before_one_plane_know_their_own_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |url: &str, file: &str| {
            Registrations::of_plane(folder.path(), url, &[PathBuf::from(file)])
        };
        at("http://a", "one.toml").add(of("notes"));
        assert_eq!(names(&at("http://a", "one.toml")), ["notes"]);
        assert!(names(&at("http://a", "two.toml")).is_empty());
        assert!(names(&at("http://b", "one.toml")).is_empty());
    }
}
