//! Tests of schema migration, and of schemas that are refused.

use std::error::Error as _;

use super::cluster::{Cluster, connect, run};
use super::{PostgresStore, config, open};
use crate::conformance::{change, commit, tenant};
use crate::{Store, StoreError};

async fn refused(url: &str) -> String {
    let error = PostgresStore::open(&config(url)).await.err().expect("a refusal");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    error.source().expect("a cause").to_string()
}

#[tokio::test]
async fn replicas_that_start_together_make_one_schema() {
    let database = Cluster::get().database().await;
    let opened: Vec<_> = (0..6)
        .map(|_| {
            let config = config(&database.url);
            tokio::spawn(async move { PostgresStore::open(&config).await })
        })
        .collect();
    for store in opened {
        let store = store.await.expect("a task").expect("a store");
        let state = store.schema().await.expect("a state");
        assert!(state.is_current() && state.found > 0, "{state:?}");
        store.ping().await.expect("it works");
    }
}

#[tokio::test]
async fn other_schemas_are_refused() {
    let fixture = open().await;
    let mut owner = connect(&fixture.database.url).await;
    let newer = "INSERT INTO toolgate.migrations (version, checksum) VALUES (9999, '\\x00')";
    run(&mut owner, newer).await;
    let words = refused(&fixture.database.url).await;
    assert!(words.contains("written by a newer version: its schema is 9999"), "{words}");
    run(&mut owner, "DELETE FROM toolgate.migrations WHERE version = 9999").await;
    run(&mut owner, "UPDATE toolgate.migrations SET checksum = '\\x00'").await;
    let words = refused(&fixture.database.url).await;
    assert!(words.ends_with("its schema is not one that this version wrote"), "{words}");
}

#[tokio::test]
async fn a_user_who_may_not_change_the_schema_uses_one_that_is_there() {
    let database = Cluster::get().database().await;
    let reader = database.url.replace("//toolgate@", "//reader@");
    let words = refused(&reader).await;
    assert!(words.contains("lacks a right"), "{words}");
    PostgresStore::open(&config(&database.url)).await.expect("a store");
    let mut owner = connect(&database.url).await;
    for grant in [
        "GRANT USAGE ON SCHEMA toolgate TO reader",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA toolgate TO reader",
    ] {
        run(&mut owner, grant).await;
    }
    let store = PostgresStore::open(&config(&reader)).await.expect("a store");
    commit(&store, &tenant("acme"), change("s", None, Vec::new())).await;
}

#[tokio::test]
async fn what_cannot_be_reached_is_named_without_its_password() {
    for (url, why) in [
        ("postgres://me:s3cret@127.0.0.1:1/d", "connect_timeout"),
        ("postgres://me:s3cret@localhost/d?host=/nowhere", "can't be used"),
        ("postgres://me:s3cret@[", "not a PostgreSQL URL"),
    ] {
        let mut config = config(url);
        config.connect_timeout = std::time::Duration::from_millis(300);
        let error = PostgresStore::open(&config).await.err().expect("a refusal");
        let words = toolgate_core::error::with_causes(&error);
        assert!(!format!("{words}{error:?}{config:?}").contains("s3cret"), "{words}");
        assert!(words.contains(why) || words.contains("connection"), "{words}");
    }
    let database = Cluster::get().database().await;
    let words = refused(&database.url.replace(&database.name, "absent")).await;
    assert!(words.contains("there is no such database"), "{words}");
}
