//! Tests of the embedded store: its file, its faults, and the whole conformance suite on it.

use tempfile::TempDir;

use super::SqliteStore;
use crate::conformance::conformance_tests;

mod faults;
mod files;
mod full;
mod plans;

pub(super) struct Fixture {
    pub(super) store: SqliteStore,
    pub(super) folder: TempDir,
}

pub(super) async fn open() -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("catalog.db")).await.expect("a store");
    Fixture { store, folder }
}

conformance_tests!(open);
