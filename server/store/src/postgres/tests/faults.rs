//! Tests of lost connections, deadlocks, callers that wait too long, and a database that is down.

use std::time::{Duration, Instant};

use super::cluster::{connect, run};
use super::{PostgresStore, config, open};
use crate::conformance::{catalog, change, commit, server_name, tenant, tool};
use crate::postgres::is_outage;
use crate::{CatalogStore as _, ChangeFeed as _, Store, StoreError};

const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn lost_connections_are_replaced() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    let mut admin = connect(&fixture.database.admin_url).await;
    let mut base = None;
    for round in 0..5 {
        run(&mut admin, TERMINATE).await;
        let tools = vec![tool("s", "a", &format!("round {round}"))];
        base = Some(commit(store, &t, change("s", base, tools)).await);
    }
    assert_eq!(base, Some(5));
}

#[tokio::test]
async fn a_connection_that_is_lost_amid_a_change_leaves_nothing() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    commit(store, &t, change("s", None, Vec::new())).await;
    let mut holder = connect(&fixture.database.url).await;
    run(&mut holder, "BEGIN; LOCK TABLE toolgate.change_counter IN EXCLUSIVE MODE").await;
    let mut admin = connect(&fixture.database.admin_url).await;
    let waiting = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let killer = async {
        let mut terminated: i64 = 0;
        while terminated == 0 {
            let found = sqlx::query_scalar(waiting).fetch_one(&mut admin).await;
            terminated = found.expect("an answer");
        }
    };
    let written = store.commit(&t, change("s", Some(1), vec![tool("s", "a", "A")]));
    let (written, ()) = tokio::join!(written, killer);
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(catalog(store, &t).await.revision, 1);
    commit(store, &t, change("s", Some(1), vec![tool("s", "a", "A")])).await;
}

#[tokio::test]
async fn a_change_that_loses_a_deadlock_is_tried_again() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    commit(store, &t, change("s", None, Vec::new())).await;
    // A superuser without deadlock detection, so that the store's side loses.
    let mut rival = connect(&fixture.database.admin_url).await;
    run(&mut rival, "SET deadlock_timeout = '10min'").await;
    run(&mut rival, "BEGIN; UPDATE toolgate.change_counter SET value = value").await;
    let meet = async {
        let mut watcher = connect(&fixture.database.admin_url).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            let found: i64 =
                sqlx::query_scalar(waiting).fetch_one(&mut watcher).await.expect("an answer");
            if found > 0 {
                break;
            }
        }
        run(&mut rival, "SELECT 1 FROM toolgate.tenants WHERE tenant = 'acme' FOR UPDATE").await;
        run(&mut rival, "ROLLBACK").await;
    };
    let written = store.commit(&t, change("s", Some(1), vec![tool("s", "a", "A")]));
    let (written, ()) = tokio::join!(written, meet);
    assert_eq!(written.expect("a commit").revision, 2);
    assert_eq!(store.last_change().await.expect("a read"), 2);
}

#[tokio::test]
async fn a_lock_is_waited_for_only_so_long() {
    let fixture = open().await;
    let t = tenant("acme");
    commit(&fixture.store, &t, change("s", None, Vec::new())).await;
    let mut impatient = config(&fixture.database.url);
    impatient.statement_timeout = Duration::from_millis(200);
    let store = PostgresStore::open(&impatient).await.expect("a store");
    let mut holder = connect(&fixture.database.admin_url).await;
    run(&mut holder, "BEGIN; SELECT 1 FROM toolgate.tenants FOR UPDATE").await;
    let written = store.commit(&t, change("s", Some(1), Vec::new())).await;
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    assert_eq!(store.revision(&t).await.expect("reads go on"), Some(1));
    run(&mut holder, "ROLLBACK").await;
    commit(&store, &t, change("s", Some(1), Vec::new())).await;
}

#[tokio::test]
async fn a_database_that_is_down_is_not_waited_for_by_each_call() {
    let mut config = config("postgres://me@127.0.0.1:1/d");
    config.connect_timeout = Duration::from_millis(500);
    let store = PostgresStore::new(&config).expect("a store");
    let first = store.ping().await.expect_err("nobody is there");
    assert!(is_outage(&first), "{first:?}");
    let begun = Instant::now();
    for _ in 0..100 {
        let error = store.ping().await.expect_err("nobody is there");
        assert!(is_outage(&error), "{error:?}");
    }
    assert!(begun.elapsed() < 50 * config.connect_timeout, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn callers_that_leave_do_no_harm() {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    for n in 0..40 {
        let tools = (0..20).map(|i| tool("s", &format!("t{i}"), &format!("generation {n}")));
        let read = store.read_server(&t, &server_name("s")).await.expect("a read");
        let base = read.map(|(server, _)| server.revision);
        let attempt = store.commit(&t, change("s", base, tools.collect()));
        let _ = tokio::time::timeout(Duration::from_micros(n * 400), attempt).await;
    }
    // All connections work, and none holds the tenant's lock.
    for n in 0..16 {
        commit(store, &t, change(&format!("after-{n}"), None, Vec::new())).await;
    }
}
