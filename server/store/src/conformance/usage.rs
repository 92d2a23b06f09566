//! Tests of usage counters: added, bounded, separate for each tenant, deleted when old.

use super::*;
use crate::{AMOUNT_MAX, Hour, UsageAddition, UsageCount};

const ALWAYS: std::ops::Range<Hour> = 0..Hour::MAX;

fn addition(of: &TenantId, hour: Hour, item: &str, amount: u64) -> UsageAddition {
    UsageAddition { tenant: of.clone(), count: UsageCount { hour, item: item.to_owned(), amount } }
}

async fn add(store: &dyn UsageStore, additions: &[UsageAddition]) {
    store.add_usage(additions).await.expect("an addition");
}

/// Returns the counters as `hour item amount`.
async fn counters(
    store: &dyn UsageStore,
    of: &TenantId,
    hours: std::ops::Range<Hour>,
    width: Hour,
) -> Vec<String> {
    let counts = store.read_usage(of, hours, width).await.expect("a read");
    counts.iter().map(|c| format!("{} {} {}", c.hour, c.item, c.amount)).collect()
}

pub(crate) async fn usage_is_added_up_by_hour(store: &dyn Store) {
    let t = tenant("acme");
    add(store, &[]).await;
    assert!(counters(store, &t, ALWAYS, 1).await.is_empty());
    add(store, &[addition(&t, 7, "b", 1), addition(&t, 7, "a", 2), addition(&t, 7, "b", 3)]).await;
    add(store, &[addition(&t, 8, "a", 5), addition(&t, 7, "a", 10)]).await;
    assert_eq!(counters(store, &t, ALWAYS, 1).await, ["7 a 12", "7 b 4", "8 a 5"]);
    // The range includes its first hour and excludes its last.
    assert_eq!(counters(store, &t, 7..8, 1).await, ["7 a 12", "7 b 4"]);
    assert_eq!(counters(store, &t, 8..9, 1).await, ["8 a 5"]);
    assert!(counters(store, &t, 9..9, 1).await.is_empty());
}

pub(crate) async fn usage_of_tenants_does_not_meet(store: &dyn Store) {
    let t = tenant("acme");
    let other = tenant("acme-2");
    add(store, &[addition(&t, 7, "a", 1), addition(&other, 7, "a", 100)]).await;
    add(store, &[addition(&other, 8, "a", 100)]).await;
    assert_eq!(counters(store, &t, ALWAYS, 1).await, ["7 a 1"]);
    assert_eq!(counters(store, &other, ALWAYS, 1).await, ["7 a 100", "8 a 100"]);
    assert!(counters(store, &tenant("acm"), ALWAYS, 1).await.is_empty());
    assert_eq!(store.revision(&t).await.expect("a read"), None, "no catalog comes of it");
}

pub(crate) async fn usage_stays_at_its_most(store: &dyn Store) {
    let t = tenant("acme");
    add(store, &[addition(&t, 7, "a", u64::MAX), addition(&t, 8, "a", AMOUNT_MAX - 1)]).await;
    for _ in 0..2 {
        add(store, &[addition(&t, 7, "a", u64::MAX), addition(&t, 8, "a", 1)]).await;
        let most = [format!("7 a {AMOUNT_MAX}"), format!("8 a {AMOUNT_MAX}")];
        assert_eq!(counters(store, &t, ALWAYS, 1).await, most);
    }
    assert_eq!(counters(store, &t, ALWAYS, 24).await, [format!("0 a {AMOUNT_MAX}")]);
}

pub(crate) async fn usage_is_folded_into_wider_buckets(store: &dyn Store) {
    let t = tenant("acme");
    let hours = [23, 24, 25, 47, 48];
    add(store, &hours.map(|hour| addition(&t, hour, "a", 1))).await;
    assert_eq!(counters(store, &t, ALWAYS, 24).await, ["0 a 1", "24 a 3", "48 a 1"]);
    assert_eq!(counters(store, &t, 25..48, 24).await, ["24 a 2"], "hours outside are not counted");
    assert_eq!(counters(store, &t, ALWAYS, Hour::MAX).await, ["0 a 5"]);
}

pub(crate) async fn old_usage_is_forgotten_for_all_tenants(store: &dyn Store) {
    let tenants: Vec<_> = ["a", "b", "c"].map(tenant).into();
    store.forget_usage(10).await.expect("nothing to forget");
    // Enough counters that one transaction can't delete all of them.
    let items: Vec<_> = (0..4_000).map(|item| format!("item-{item}")).collect();
    for t in &tenants {
        let old = items.iter().map(|item| addition(t, 9, item, 1));
        add(store, &old.chain([addition(t, 10, "a", 1)]).collect::<Vec<_>>()).await;
    }
    add(store, &[addition(&tenant("young"), 11, "a", 1)]).await;
    store.forget_usage(10).await.expect("a clearance");
    for t in &tenants {
        assert_eq!(counters(store, t, ALWAYS, 1).await, ["10 a 1"]);
    }
    assert_eq!(counters(store, &tenant("young"), ALWAYS, 1).await, ["11 a 1"]);
    store.forget_usage(Hour::MAX).await.expect("a clearance");
    assert!(counters(store, &tenant("young"), ALWAYS, 1).await.is_empty());
}

pub(crate) async fn usage_added_at_once_is_all_there(store: &dyn Store) {
    let t = tenant("acme");
    let one = [addition(&t, 7, "a", 1)];
    let round = async || {
        for _ in 0..10 {
            add(store, &one).await;
        }
    };
    tokio::join!(round(), round(), round(), round());
    assert_eq!(counters(store, &t, ALWAYS, 1).await, ["7 a 40"]);
}
