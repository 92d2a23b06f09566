//! Tests of damage, a full disk, callers that leave, and time that passes.

use std::error::Error;
use std::time::Duration;

use sqlx::sqlite::SqlitePool;

use super::super::open::Tuning;
use super::open;
use crate::conformance::{
    ENCODER, catalog, change, commit, embedding, removal, request, server_name, tenant, tool,
};
use crate::sql::{self, Scope};
use crate::sqlite::SqliteStore;
use crate::{CatalogStore as _, EmbeddingStore as _, ServerChange, Store, StoreError};
use toolgate_core::identity::TenantId;
use toolgate_core::mcp_server::{TransportHint, TrustTier};

async fn run(writer: &SqlitePool, sql: &'static str) {
    sqlx::query(sql).execute(writer).await.expect(sql);
}

#[tokio::test]
async fn damaged_rows_are_named() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    let mut first = change("s", None, vec![tool("s", "a", "A")]);
    first.embeddings = vec![embedding("A", &[1.0, 2.0])];
    let mut second = change("o", None, vec![tool("o", "b", "B")]);
    second.embeddings = vec![embedding("B", &[1.0, 2.0])];
    commit(store, &t, second).await;
    commit(store, &t, first).await;

    run(&store.writer, "UPDATE embeddings SET vector = x'0000803f00'").await;
    let readable = store.load_embeddings(&t, ENCODER).await.expect("others are read all the same");
    assert!(readable.is_empty(), "{readable:?}");
    let whole = [embedding("A", &[1.0, 2.0]), embedding("B", &[1.0, 2.0])];
    store.save_embeddings(&t, ENCODER, &whole[..1]).await.expect("a save");
    run(&store.writer, "UPDATE embeddings SET vector = x'0000803f' WHERE length(vector) = 5").await;
    let mut lengths: Vec<_> = store
        .load_embeddings(&t, ENCODER)
        .await
        .expect("a read")
        .into_values()
        .map(|v| v.len())
        .collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 2], "which length is right is known by whoever has the encoder");
    store.save_embeddings(&t, ENCODER, &whole).await.expect("a save");
    assert_eq!(store.load_embeddings(&t, ENCODER).await.expect("mended").len(), 2);

    for sql in [
        "UPDATE tools SET required_scopes = '[1'",
        "UPDATE tools SET required_scopes = '[]', precondition = '{}'",
        "UPDATE tools SET precondition = NULL, hash = x'00'",
        "UPDATE tools SET hash = zeroblob(32), schema_tokens = -1",
        "UPDATE tools SET schema_tokens = 1, name = ' '",
        "UPDATE tools SET name = server, definition = CAST(x'ff' AS TEXT)",
    ] {
        run(&store.writer, sql).await;
        let damaged = store.load_catalog(&t).await;
        assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{sql}: {damaged:?}");
    }
    run(&store.writer, "UPDATE tools SET definition = '{}'").await;
    assert_eq!(catalog(store, &t).await.tools.len(), 2);
}

#[tokio::test]
async fn numbers_of_a_newer_version_are_unspecified() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    commit(store, &t, change("s", None, Vec::new())).await;
    run(&store.writer, "UPDATE servers SET transport_hint = 9, trust_tier = -1").await;
    let server = catalog(store, &t).await.servers.remove(0).record;
    assert_eq!(server.transport_hint, TransportHint::Unspecified);
    assert_eq!(server.trust_tier, TrustTier::Unspecified);
    run(&store.writer, "UPDATE servers SET trust_tier = 2147483648").await;
    let damaged = store.load_catalog(&t).await;
    assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{damaged:?}");
}

#[tokio::test]
async fn a_damaged_file_fails_without_a_panic() {
    let fixture = open().await;
    let path = fixture.folder.path().join("catalog.db");
    let t = tenant("acme");
    let tools: Vec<_> = (0..500).map(|i| tool("s", &format!("t{i}"), "S")).collect();
    commit(&fixture.store, &t, change("s", None, tools.clone())).await;
    fixture.store.close().await.expect("a close");
    let whole = std::fs::read(&path).expect("a database");
    let damage = |from: usize| {
        let mut bytes = whole.clone();
        bytes[from..].fill(0xa5);
        std::fs::write(&path, bytes).expect("a damaged database");
    };
    damage(8192);
    let refused = SqliteStore::open(&path).await.expect_err("a refusal");
    let cause = refused.source().expect("a cause").to_string();
    assert!(cause.ends_with("the database is damaged"), "{cause}");
    damage(whole.len() / 2);
    let store = SqliteStore::open(&path).await.expect("the tables of the schema are whole");
    let read = store.load_catalog(&t).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    let written = store.commit(&t, change("s", Some(1), tools)).await;
    assert!(matches!(written, Err(StoreError::Damaged(_))), "{written:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_that_is_deleted_or_replaced_takes_no_change() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    let log = fixture.folder.path().join("catalog.db-wal");
    let base = commit(store, &t, change("s", None, vec![tool("s", "a", "A")])).await;
    let aside = fixture.folder.path().join("aside");
    std::fs::rename(&log, &aside).expect("moved");
    for is_replaced in [false, true] {
        if is_replaced {
            std::fs::write(&log, "").expect("another file");
        }
        let refused = store.commit(&t, change("s", Some(base), Vec::new())).await;
        let refused = refused.expect_err("it would be lost with the process");
        let words = refused.source().expect("a cause").to_string();
        assert!(words.contains("write-ahead log was") && words.contains("put it back"), "{words}");
    }
    std::fs::rename(&aside, &log).expect("put back");
    commit(store, &t, change("s", Some(base), vec![tool("s", "a", "B")])).await;
}

fn bulky(server: &str, base: Option<u64>, kilobytes: usize) -> ServerChange {
    let mut heavy = tool(server, "heavy", "Heavy");
    heavy.definition = "x".repeat(kilobytes * 1024);
    change(server, base, vec![heavy])
}

#[tokio::test]
async fn a_full_disk_fails_commits_cleanly() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = Tuning { max_pages: Some(200), ..Tuning::default() };
    let path = folder.path().join("catalog.db");
    let store = SqliteStore::open_with(&path, tuning).await.expect("a store");
    let t = tenant("acme");
    commit(&store, &t, bulky("first", None, 300)).await;
    commit(&store, &t, change("small", None, vec![tool("small", "a", "A")])).await;
    for _ in 0..5 {
        let full = store.commit(&t, bulky("second", None, 600)).await;
        let full: toolgate_core::error::Error = full.expect_err("a refusal").into();
        assert!(full.to_string().contains("disk of the store is full"), "{full:?}");
        let after = catalog(&store, &t).await;
        assert_eq!((after.revision, after.servers.len(), after.tools.len()), (2, 2, 2));
    }
    // A small change still fits, and so does the large one once there is room.
    commit(&store, &t, change("small", Some(2), vec![tool("small", "a", "B")])).await;
    store.remove_server(&t, &server_name("first"), 1).await.expect("a removal");
    commit(&store, &t, bulky("second", None, 600)).await;
    let after = catalog(&store, &t).await;
    assert_eq!((after.revision, after.servers.len(), after.tools.len()), (5, 2, 2));
    let checked: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&store.readers)
        .await
        .expect("a check");
    assert_eq!(checked, "ok");
}

#[tokio::test]
async fn callers_that_leave_do_no_harm() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    for n in 0..60 {
        let base = base_of(store, &t).await;
        let tools = (0..200).map(|i| tool("s", &format!("t{i}"), &format!("generation {n}")));
        let attempt = store.commit(&t, change("s", base, tools.collect()));
        let limit = Duration::from_micros(n * 150);
        let _ = tokio::time::timeout(limit, attempt).await;
        let _ = tokio::time::timeout(limit, store.load_catalog(&t)).await;
        let Some(found) = store.load_catalog(&t).await.expect("a read") else { continue };
        let first = &found.tools[0].record.summary;
        assert_eq!(found.tools.len(), 200);
        assert!(found.tools.iter().all(|tool| tool.record.summary == *first));
    }
    loop {
        // The last abandoned commit may still complete after this read.
        let base = base_of(store, &t).await;
        match store.commit(&t, change("s", base, Vec::new())).await {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, StoreError::Conflict), "{error}"),
        }
    }
}

async fn base_of(store: &SqliteStore, t: &TenantId) -> Option<u64> {
    let read = store.read_server(t, &server_name("s")).await.expect("a read");
    read.map(|(server, _)| server.revision)
}

#[tokio::test]
async fn requests_are_forgotten_after_a_day() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    for id in ["r1", "r2", "r3"] {
        store.record_request(&t, request(id, "one")).await.expect("a record");
    }
    let age = "UPDATE requests SET committed_ms = committed_ms - 86400000 WHERE id <> 'r3'";
    run(&store.writer, age).await;
    assert_eq!(store.find_request(&t, "r1").await.expect("a read"), None);
    store.record_request(&t, request("r1", "two")).await.expect("the id is free again");
    let recorded = store.find_request(&t, "r1").await.expect("a read").expect("the request");
    assert_eq!(recorded.answer, b"answer to two");
    commit(store, &t, change("s", None, vec![tool("s", "a", "A")])).await;
    let left: Vec<String> = sqlx::query_scalar("SELECT id FROM requests ORDER BY id")
        .fetch_all(&store.readers)
        .await
        .expect("a read");
    assert_eq!(left, ["r1", "r3"]);
    commit(store, &t, removal("s", 1, &["a"])).await;
}

#[tokio::test]
async fn a_writer_that_never_ends_is_waited_for_only_so_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = Tuning { busy_timeout: Duration::from_millis(10), ..Tuning::default() };
    let path = folder.path().join("catalog.db");
    let store = SqliteStore::open_with(&path, tuning).await.expect("a store");
    let other = SqliteStore::open_with(&path, tuning).await.expect("another process's store");
    let t = tenant("acme");
    let held = sql::Backend::begin_write(&other, Scope::Following).await.expect("the write lock");
    let waited = store.commit(&t, change("s", None, Vec::new())).await;
    assert!(matches!(waited, Err(StoreError::Unavailable(_))), "{waited:?}");
    assert_eq!(store.revision(&t).await.expect("reads go on"), None);
    held.inner.rollback().await.expect("a rollback");
    commit(&store, &t, change("s", None, Vec::new())).await;
    assert_eq!(other.revision(&t).await.expect("a read"), Some(1));
}

#[cfg(unix)]
#[tokio::test]
async fn a_database_that_is_gone_takes_no_change() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    let path = fixture.folder.path().join("catalog.db");
    let away = fixture.folder.path().join("away.db");
    let small = |base| change("small", base, vec![tool("small", "a", "A")]);
    let refused = async |base, why: &str| {
        let error = store.commit(&t, small(base)).await.expect_err("a refusal");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let cause = error.source().expect("a cause").to_string();
        assert!(cause.contains(why) && cause.contains("catalog.db"), "{cause}");
    };
    std::fs::rename(&path, &away).expect("moved");
    refused(None, "deleted or moved").await;
    std::fs::write(&path, "another").expect("a file");
    refused(None, "replaced").await;
    // Nothing of the change was written. Once the file is back, the store works again.
    std::fs::rename(&away, &path).expect("back");
    commit(store, &t, small(None)).await;
    assert_eq!(catalog(store, &t).await.revision, 1);
}
