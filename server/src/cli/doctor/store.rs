//! Checks that the data directory can be written and has free space, and that the handle key can be read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::check::Check;
use crate::serve::{DATABASE, ServeError, holder, require_own};
use toolgate_config::KeySource;
use toolgate_core::error::with_causes;
use toolgate_store::sqlite::SqliteStore;

/// Free bytes below which a server may soon fail to store a registration: 1 GiB.
const TIGHT: u64 = 1 << 30;
const FULL: u64 = 64 << 20;

pub(super) fn check(directory: &Path) -> Vec<Check> {
    let place = directory.display();
    if !directory.exists() {
        return vec![check_absent(directory)];
    }
    let writable = match probe(directory) {
        Ok(()) => Check::ok("store", format!("{place} can be written")),
        Err(error) => Check::fail("store", format!("{place} cannot be written: {error}")).advice(
            "give this user the right to write there, or set store.path to another directory",
        ),
    };
    let held = holder(directory).map(|holder| {
        Check::warn("data directory", format!("{place} is in use by a server that runs ({holder})")).advice(
            "another server needs another directory: --data-dir (store.path), and other ports: --listen and --admin-listen",
        )
    });
    [writable].into_iter().chain(held).chain([check_space(directory)]).collect()
}

/// Checks that the database in the directory can be read completely. Returns `None` if there is none yet.
pub(super) async fn check_database(directory: &Path) -> Option<Check> {
    let path = directory.join(DATABASE);
    let place = path.display().to_string();
    if let Err(ServeError::Gone { path, marker }) = require_own(directory) {
        let check = Check::fail("database", format!("{path} is gone, and there was one"));
        let advice =
            format!("put it back from a backup, or delete {marker} to begin with an empty one");
        return Some(check.advice(advice));
    }
    if !path.exists() {
        return None;
    }
    let check = match SqliteStore::look_through(&path).await {
        Ok(()) => Check::ok("database", format!("{place} is whole")),
        Err(error) => Check::fail("database", format!("{place}: {}", with_causes(&error))).advice(
            "put a backup back, or save what can be read with `toolgate store export` and import it into another data directory",
        ),
    };
    Some(check)
}

/// Checks that a missing directory can be created, which a server does itself.
fn check_absent(directory: &Path) -> Check {
    let place = directory.display();
    let parent = directory.ancestors().find(|ancestor| ancestor.is_dir());
    match parent.map(probe) {
        Some(Ok(())) => Check::ok("store", format!("{place} is not there yet; a server makes it")),
        Some(Err(error)) => Check::fail("store", format!("{place} cannot be made: {error}"))
            .advice("make it and give this user the right to write there, or set store.path"),
        None => Check::fail("store", format!("{place} cannot be made: nothing above it exists"))
            .advice("set store.path to a directory that can be made"),
    }
}

/// Writes a byte to a temporary file and removes the file.
fn probe(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".toolgate-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(b"x").and_then(|()| file.sync_all());
    fs::remove_file(&path)?;
    written
}

fn check_space(directory: &Path) -> Check {
    let place = directory.display();
    match free_bytes(directory) {
        Err(error) => Check::warn("disk space", format!("{place}: cannot be told: {error}")),
        Ok(free) => judge_space(free, &place.to_string()),
    }
}

fn judge_space(free: u64, place: &str) -> Check {
    let detail = format!("{:.1} GiB free at {place}", free as f64 / TIGHT as f64);
    if free < FULL {
        Check::fail("disk space", detail).advice("make room, or set store.path to another disk")
    } else if free < TIGHT {
        Check::warn("disk space", detail)
            .advice("make room soon: registrations fail on a full disk")
    } else {
        Check::ok("disk space", detail)
    }
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_directory: &Path) -> io::Result<u64> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Checks the key. A key that a server would create is not created here.
pub(super) fn check_key(key: &KeySource) -> Check {
    let detail = match key {
        KeySource::Given(_) => "given by the configuration".to_owned(),
        KeySource::Kept(path) if !path.exists() => {
            format!("a server makes one and keeps it at {}", path.display())
        }
        KeySource::File(path) | KeySource::Kept(path) => match key.load() {
            Ok(_) => format!("good, at {}", path.display()),
            Err(error) => {
                return Check::fail("handle key", error.to_string()).advice(
                    "write one with `openssl rand -base64 32`, readable by this user only",
                );
            }
        },
    };
    Check::ok("handle key", detail)
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn a_good_directory_is_left_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let checks = check(directory.path());
        assert_eq!(checks[0].status, Status::Ok, "{checks:?}");
        assert_eq!(fs::read_dir(directory.path()).expect("listing").count(), 0);
        let checks = check(&directory.path().join("a/b"));
        assert_eq!((checks.len(), checks[0].status), (1, Status::Ok));
        assert!(!directory.path().join("a").exists());
    }

    #[test]
    fn a_server_that_holds_the_directory_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let held = crate::serve::hold(directory.path()).expect("the lock");
        let told =
            || check(directory.path()).into_iter().find(|check| check.name == "data directory");
        let warning = told().expect("a warning");
        assert_eq!(warning.status, Status::Warn);
        assert!(warning.advice.contains("--data-dir"), "{warning:?}");
        drop(held);
        assert!(told().is_none());
    }

    #[test]
    fn a_file_in_the_way_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "").expect("written");
        assert_eq!(check(&path)[0].status, Status::Fail);
    }

    #[test]
    fn space_is_judged() {
        for (free, want) in
            [(1 << 20, Status::Fail), (100 << 20, Status::Warn), (2 << 30, Status::Ok)]
        {
            let check = judge_space(free, "/x");
            assert_eq!(check.status, want, "{check:?}");
            assert_eq!(check.advice.is_empty(), want == Status::Ok);
        }
        assert!(judge_space((2 << 30) + 5, "/x").detail.starts_with("2.0 GiB"));
    }

    #[test]
    fn keys_are_looked_at_but_not_made() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("handle.key");
        let kept = KeySource::Kept(path.clone());
        assert_eq!(check_key(&kept).status, Status::Ok);
        assert!(!path.exists());
        let named = KeySource::File(path.clone());
        assert_eq!(check_key(&named).status, Status::Fail);
        kept.load().expect("a new key");
        assert_eq!(check_key(&named).status, Status::Ok);
        fs::write(&path, "short").expect("written");
        assert_eq!(check_key(&kept).status, Status::Fail);
    }
}
