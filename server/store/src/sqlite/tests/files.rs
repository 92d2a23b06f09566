//! Tests of opening, closing and reopening a database, and of the messages for files that are refused.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::super::open::Tuning;
use super::open;
use crate::conformance::{catalog, change, commit, server_name, tenant, tool};
use crate::sqlite::SqliteStore;
use crate::{CatalogStore as _, Store, StoreError};

async fn refused(path: &Path) -> String {
    let tuning = Tuning { busy_timeout: Duration::from_millis(10), ..Tuning::default() };
    let error = SqliteStore::open_with(path, tuning).await.expect_err("a refusal");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    error.source().expect("a cause").to_string()
}

async fn run(path: &Path, statements: &[&'static str]) -> sqlx::SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.expect("a connection");
    for sql in statements {
        sqlx::query(*sql).execute(&mut connection).await.expect(sql);
    }
    connection
}

#[tokio::test]
async fn unfit_files_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    assert!(refused(folder.path()).await.ends_with("a folder, not a database file"));

    std::fs::write(path("text"), "no database ".repeat(999)).expect("a file");
    assert!(refused(&path("text")).await.ends_with("not an SQLite database"));
    assert!(refused(&path("text/x/catalog.db")).await.ends_with("text: a file, not a folder"));

    run(&path("other.db"), &["CREATE TABLE notes (text)"]).await.close().await.expect("a close");
    assert!(refused(&path("other.db")).await.ends_with("a database of another application"));
    let tables = run(&path("other.db"), &[]).await;
    let found = sqlx::query("SELECT 1 FROM sqlite_schema").fetch_all(&mut { tables }).await;
    assert_eq!(found.expect("a read").len(), 1, "left as it was");

    SqliteStore::open(&path("ro.db")).await.expect("a store").close().await.expect("a close");
    let mut permissions = path("ro.db").metadata().expect("a file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(path("ro.db"), permissions).expect("permissions");
    assert!(refused(&path("ro.db")).await.contains("read-only"));
}

#[tokio::test]
async fn a_locked_database_is_refused() {
    let fixture = open().await;
    let path = fixture.folder.path().join("catalog.db");
    fixture.store.close().await.expect("a close");
    let lock = ["PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "DELETE FROM tenants"];
    let holder = run(&path, &lock).await;
    assert!(refused(&path).await.ends_with("locked by another process"));
    holder.close().await.expect("a close");
    SqliteStore::open(&path).await.expect("a store again");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let fixture = open().await;
    let path = fixture.folder.path().join("catalog.db");
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'later', TRUE, x'00', 0)";
    sqlx::query(newer).execute(&fixture.store.writer).await.expect("an insert");
    fixture.store.close().await.expect("a close");
    let words = refused(&path).await;
    assert!(words.contains("written by a newer version: its schema is 9999"), "{words}");
    let other = [
        "DELETE FROM _sqlx_migrations WHERE version = 9999",
        "UPDATE _sqlx_migrations SET checksum = x'00'",
    ];
    run(&path, &other).await.close().await.expect("a close");
    let words = refused(&path).await;
    assert!(words.ends_with("its schema is not one that this version wrote"), "{words}");
}

#[tokio::test]
async fn content_survives_close_and_drop() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/er/catalog.db");
    let t = tenant("acme");
    let mut base = None;
    for round in 1..=6 {
        let store = SqliteStore::open(&path).await.expect("a store");
        let summary = format!("round {round}");
        base = Some(commit(&store, &t, change("s", base, vec![tool("s", "a", &summary)])).await);
        if round % 2 == 0 {
            store.close().await.expect("a close");
            let log = path.with_file_name("catalog.db-wal");
            assert!(!log.exists(), "the write-ahead log is merged");
        }
        let store = SqliteStore::open(&path).await.expect("a store");
        assert_eq!(catalog(&store, &t).await.tools[0].record.summary, summary);
        assert_eq!(store.revision(&t).await.expect("a read"), Some(round));
    }
}

#[tokio::test]
async fn a_closed_store_fails_in_words() {
    let fixture = open().await;
    fixture.store.close().await.expect("a close");
    let t = tenant("acme");
    let s = server_name("s");
    let read = fixture.store.read_server(&t, &s).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    let written = fixture.store.commit(&t, change("s", None, Vec::new())).await;
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    assert!(fixture.store.ping().await.is_err());
    fixture.store.close().await.expect_err("nothing left to merge");
}

#[tokio::test]
async fn commits_are_durable_by_pragma() {
    let store = open().await;
    let text = async |sql: &'static str| -> String {
        sqlx::query_scalar(sql).fetch_one(&store.store.writer).await.expect("a pragma")
    };
    let number = async |sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(&store.store.writer).await.expect("a pragma")
    };
    assert_eq!(text("PRAGMA journal_mode").await, "wal");
    assert_eq!(number("PRAGMA synchronous").await, 2, "FULL");
    assert_eq!(number("PRAGMA foreign_keys").await, 1);
    let write = sqlx::query("DELETE FROM tenants").execute(&store.store.readers).await;
    assert!(write.is_err(), "readers can't write");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("new/catalog.db")).await.expect("a store");
    commit(&store, &tenant("acme"), change("s", None, Vec::new())).await;
    let mode = |name: &str| {
        let found = folder.path().join(name).metadata().expect("a file");
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("new"), 0o700);
    for name in ["new/catalog.db", "new/catalog.db-wal", "new/catalog.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}
