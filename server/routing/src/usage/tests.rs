//! Tests of the ledger with a real store: counted amounts are read back, whatever happens in between.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Amounts, Granularity, Ledger, Usage, UsageMetrics, keep};
use toolgate_config::UsageConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{CatalogStore as _, Hour, ServerChange, ServerRecord, UsageStore as _};

const ALWAYS: std::ops::Range<Hour> = 0..Hour::MAX;

struct Fixture {
    ledger: Arc<Ledger>,
    store: Arc<SqliteStore>,
    folder: TempDir,
}

/// Opens a store with catalogs of the tenants `acme` and `other`.
async fn open() -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(SqliteStore::open(&folder.path().join("t.db")).await.expect("a store"));
    for name in ["acme", "other"] {
        store.commit(&tenant(name), empty_server()).await.expect("a commit");
    }
    Fixture { ledger: Arc::new(Ledger::new(Arc::clone(&store) as _)), store, folder }
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn empty_server() -> ServerChange {
    let server = ServerRecord::new(ServerName::parse("s").expect("a name"));
    let (base, upserts, removals, embeddings) = Default::default();
    let fingerprint = String::new();
    let max_tools = 1;
    let max_servers = 1;
    let request = None;
    ServerChange {
        comparison: None,
        base,
        server,
        upserts,
        removals,
        embeddings,
        fingerprint,
        max_tools,
        max_servers,
        request,
    }
}

fn turns(route_calls: u64) -> Amounts {
    Amounts { route_calls, full_tokens: 100 * route_calls, ..Amounts::default() }
}

async fn read(ledger: &Arc<Ledger>, name: &str, buckets: Option<Granularity>) -> Usage {
    ledger.read(&tenant(name), ALWAYS, buckets).await.expect("a read")
}

async fn calls(ledger: &Arc<Ledger>, name: &str) -> u64 {
    read(ledger, name, None).await.total.route_calls
}

/// Runs a statement over its own connection.
async fn run(fixture: &Fixture, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(fixture.folder.path().join("t.db"));
    let mut connection = options.connect().await.expect("a connection");
    sqlx::query(sql).execute(&mut connection).await.expect(sql);
    connection.close().await.expect("a close");
}

#[tokio::test]
async fn what_is_counted_is_read_at_once_and_kept() {
    let fixture = open().await;
    let t = tenant("acme");
    let ledger = &fixture.ledger;
    assert_eq!(read(ledger, "acme", Some(Granularity::Day)).await, Usage::default());
    let mut refused = Amounts { allowed_calls: 2, ..Amounts::default() };
    refused.refused.insert("UNKNOWN_TOOL".into(), 3);
    ledger.count(&t, &turns(1));
    ledger.count(&t, &refused);
    let mut want = turns(1);
    want.add(&refused);
    assert_eq!(read(ledger, "acme", None).await, Usage { total: want.clone(), buckets: vec![] });
    let reopened = Arc::new(Ledger::new(Arc::clone(&fixture.store) as _));
    assert_eq!(read(&reopened, "acme", None).await.total, want);
    assert_eq!(calls(ledger, "other").await, 0, "another tenant's");
}

#[tokio::test]
async fn buckets_are_hours_or_days_of_the_span() {
    let fixture = open().await;
    let t = tenant("acme");
    let ledger = &fixture.ledger;
    for hour in [23, 24, 24, 30, 48] {
        ledger.count_at(&t, hour, &turns(1));
    }
    let starts = async |span, width| {
        let usage = ledger.read(&t, span, Some(width)).await.expect("a read");
        let buckets = usage.buckets.iter();
        let listed: Vec<_> = buckets.map(|b| (b.start, b.amounts.route_calls)).collect();
        assert_eq!(usage.total.route_calls, listed.iter().map(|(_, calls)| calls).sum::<u64>());
        listed
    };
    assert_eq!(starts(ALWAYS, Granularity::Hour).await, [(23, 1), (24, 2), (30, 1), (48, 1)]);
    assert_eq!(starts(ALWAYS, Granularity::Day).await, [(0, 1), (24, 3), (48, 1)]);
    assert_eq!(starts(25..48, Granularity::Day).await, [(24, 1)]);
}

#[tokio::test]
async fn too_many_buckets_are_refused_in_words() {
    let fixture = open().await;
    let t = tenant("acme");
    for hour in 0..=10_000 {
        fixture.ledger.count_at(&t, hour, &turns(1));
        if hour % 1_000 == 0 {
            fixture.ledger.flush().await.expect("a flush");
        }
    }
    let refused = fixture.ledger.read(&t, ALWAYS, Some(Granularity::Hour)).await;
    let error = refused.expect_err("a refusal").to_string();
    assert_eq!(
        error,
        "granularity: would give 10001 buckets, more than 10000: ask for a shorter span or for days"
    );
    assert_eq!(calls(&fixture.ledger, "acme").await, 10_001);
}

#[tokio::test]
async fn an_unknown_tenant_is_said() {
    let fixture = open().await;
    let refused = fixture.ledger.read(&tenant("nobody"), ALWAYS, None).await;
    assert!(matches!(refused, Err(Error::TenantNotFound(name)) if name == "nobody"));
}

#[tokio::test]
async fn what_could_not_be_written_waits() {
    let fixture = open().await;
    let ledger = &fixture.ledger;
    run(&fixture, "ALTER TABLE usage RENAME TO away").await;
    for name in ["acme", "other", "acme"] {
        ledger.count(&tenant(name), &turns(1));
        ledger.flush().await.expect_err("there is no table");
    }
    let refused = ledger.read(&tenant("acme"), ALWAYS, None).await;
    assert!(matches!(refused, Err(Error::StoreUnavailable(_))), "half an answer is none");
    run(&fixture, "ALTER TABLE away RENAME TO usage").await;
    assert_eq!((calls(ledger, "acme").await, calls(ledger, "other").await), (2, 1));
}

#[tokio::test]
async fn memory_is_bounded_while_the_store_fails() {
    let fixture = open().await;
    let t = tenant("acme");
    let ledger = &fixture.ledger;
    for hour in 0..100_000 {
        ledger.count_at(&t, hour, &turns(1));
    }
    assert_eq!((ledger.take_lost(), ledger.take_lost()), (100_000 - 4_096, 0));
    // Amounts of an hour that already waits are still counted.
    ledger.count_at(&t, 0, &turns(1));
    assert_eq!(calls(ledger, "acme").await, 4_096 + 1);
    ledger.count_at(&t, 5_000, &turns(1));
    assert_eq!(calls(ledger, "acme").await, 4_096 + 2, "there is room again");
}

#[tokio::test]
async fn a_flush_outlives_who_asked_for_it() {
    let fixture = open().await;
    for round in 1..=20 {
        fixture.ledger.count(&tenant("acme"), &turns(1));
        let asked = tokio::time::timeout(Duration::from_micros(round * 50), fixture.ledger.flush());
        drop(asked.await);
        assert_eq!(calls(&fixture.ledger, "acme").await, round);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_between_counting_and_flushing() {
    let fixture = open().await;
    let count = |name: &'static str| {
        let ledger = Arc::clone(&fixture.ledger);
        tokio::task::spawn_blocking(move || {
            (0..2_000).for_each(|_| ledger.count(&tenant(name), &turns(1)));
        })
    };
    let counting = [count("acme"), count("acme"), count("other")];
    while !counting.iter().all(tokio::task::JoinHandle::is_finished) {
        fixture.ledger.flush().await.expect("a flush");
    }
    assert_eq!(calls(&fixture.ledger, "acme").await, 4_000);
    assert_eq!(calls(&fixture.ledger, "other").await, 2_000);
}

#[tokio::test]
async fn the_keeper_flushes_forgets_and_flushes_at_its_end() {
    let fixture = open().await;
    let t = tenant("acme");
    let stop = CancellationToken::new();
    fixture.ledger.count_at(&t, 5, &turns(1));
    fixture.ledger.flush().await.expect("a flush");
    fixture.ledger.count(&t, &turns(1));
    let config = UsageConfig { flush_interval: Duration::from_millis(1), retention_hours: 24 };
    let ledger = Arc::clone(&fixture.ledger);
    let keeper = tokio::spawn(keep(ledger, config, UsageMetrics::default(), stop.clone()));
    let stored = async || {
        let counts = fixture.store.read_usage(&t, ALWAYS, 1).await.expect("a read");
        let calls = counts.iter().filter(|count| count.item == "route_calls");
        calls.map(|count| count.amount).sum::<u64>()
    };
    // The old usage is deleted and the new one is written, without a request.
    let forgotten = async || {
        while !fixture.store.read_usage(&t, 0..6, 1).await.expect("a read").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), forgotten()).await.expect("in time");
    assert_eq!(stored().await, 1);
    fixture.ledger.count(&t, &turns(1));
    stop.cancel();
    keeper.await.expect("an end");
    assert_eq!(stored().await, 2);
}

#[tokio::test]
async fn failed_flushes_are_counted_in_a_metric() {
    let fixture = open().await;
    run(&fixture, "DROP TABLE usage").await;
    fixture.ledger.count(&tenant("acme"), &turns(1));
    let config = UsageConfig { flush_interval: Duration::from_secs(60), retention_hours: 24 };
    let metrics = UsageMetrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let stop = CancellationToken::new();
    stop.cancel();
    keep(Arc::clone(&fixture.ledger), config, metrics, stop).await;
    let mut exposed = String::new();
    encode(&mut exposed, &registry).expect("writing to a String does not fail");
    assert!(exposed.contains("toolgate_usage_flush_failures_total 1"), "{exposed}");
}
