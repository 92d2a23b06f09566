//! Memory of what this gateway registered, beyond its own life: a server that leaves its file while the gateway is down is taken
//! out of the catalog at the next start, and no server that somebody else registered.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolgate_upstream::replace_private;
use url::Url;

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

    /// Reads what a gateway registered for this tenant with a plane of its own before a store that others use too.
    #[must_use]
    pub fn of_shared_store(folder: &Path, url: &str, tenant: &str) -> Self {
        Self::read(folder.join(file_name(&[
            b"store",
            without_password(url).as_bytes(),
            tenant.as_bytes(),
        ])))
    }

    /// Reads what a gateway of these files registered for this tenant with a plane at this URL, which others may use too.
    #[must_use]
    pub fn of_plane(folder: &Path, url: &str, tenant: &str, files: &[PathBuf]) -> Self {
        let url = without_password(url);
        let files: Vec<PathBuf> = files
            .iter()
            .map(|file| fs::canonicalize(file).unwrap_or_else(|_absent| file.clone()))
            .collect();
        let mut identity: Vec<&[u8]> = vec![b"plane", url.as_bytes(), tenant.as_bytes()];
        identity.extend(files.iter().map(|file| file.as_os_str().as_encoded_bytes()));
        Self::read(folder.join(file_name(&identity)))
    }

    fn read(path: PathBuf) -> Self {
        let known = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        };
        let known = known.unwrap_or_else(|error| {
            let path = path.display();
            tracing::warn!(%path, %error, "which servers were registered can't be read: those that left their file stay in the catalog");
            BTreeSet::new()
        });
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
        if let Err(error) = replace_private(path, &self.known) {
            let path = path.display();
            tracing::warn!(%path, %error, "which servers are registered can't be written down");
        }
    }
}

/// Returns the name of the file of a gateway with this identity.
fn file_name(identity: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in identity {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let hash = hex::encode(hash.finalize());
    format!("registered-{}.json", &hash[..16])
}

/// Returns a URL without its password, which may change while the place does not.
fn without_password(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
    // A URL that can have no password has none.
    let _none = parsed.set_password(None);
    parsed.into()
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
        let at = |url: &str, tenant: &str, file: &str| {
            Registrations::of_plane(folder.path(), url, tenant, &[PathBuf::from(file)])
        };
        at("http://a", "acme", "one.toml").add(of("notes"));
        assert_eq!(names(&at("http://a", "acme", "one.toml")), ["notes"]);
        assert!(names(&at("http://a", "acme", "two.toml")).is_empty());
        assert!(names(&at("http://b", "acme", "one.toml")).is_empty());
        assert!(names(&at("http://a", "beta", "one.toml")).is_empty(), "another tenant's");
    }

    #[test]
    fn what_is_in_one_store_is_not_taken_for_what_is_in_another() {
        let folder = tempfile::tempdir().expect("a folder");
        Registrations::of_own_plane(folder.path(), false).add(of("notes"));
        let shared =
            |url: &str, tenant: &str| Registrations::of_shared_store(folder.path(), url, tenant);
        assert!(names(&shared("postgres://u:p@h/d", "acme")).is_empty());
        shared("postgres://u:p@h/d", "acme").add(of("git"));
        assert_eq!(names(&shared("postgres://u:p@h/d", "acme")), ["git"]);
        assert_eq!(names(&shared("postgres://u:q@h/d", "acme")), ["git"], "a new password");
        assert!(names(&shared("postgres://u:p@h/e", "acme")).is_empty());
        assert!(names(&shared("postgres://u:p@h/d", "beta")).is_empty());
        assert_eq!(names(&Registrations::of_own_plane(folder.path(), false)), ["notes"]);
    }

    #[test]
    #[cfg(unix)]
    fn the_file_is_for_its_owner_alone_and_the_only_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("data");
        let mut registrations = Registrations::of_plane(&folder, "http://a", "acme", &[]);
        registrations.add(of("notes"));
        registrations.add(of("git"));
        let mode = |path: &Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let files: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|file| file.expect("a file").path())
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(mode(&files[0]), 0o600);
    }
}
