//! Ledger: amounts are kept in memory, by tenant and hour, until they are flushed to the store. Counting never waits
//! for the store and never fails. A crash loses only the amounts since the last flush.

use std::collections::{BTreeMap, HashMap, hash_map::RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::amounts::Amounts;
use super::searches::Searches;
use parking_lot::{Mutex, MutexGuard};
use toolgate_core::error::Error;
use toolgate_core::identity::{TenantId, ToolKey};
use toolgate_store::{Hour, Store, StoreError, UsageAddition, UsageCount, moment};

/// Maximum buckets in one answer.
pub const BUCKETS_MAX: usize = 10_000;

const SECONDS_OF_AN_HOUR: u64 = 3_600;
const HOURS_OF_A_DAY: Hour = 24;
/// Number of independent locks. Counting holds one of them for some tens of nanoseconds.
const PARTS: usize = 16;
/// Maximum hours in each part that wait for a failing store. Further amounts are not counted.
const WAITING_MAX: usize = 4_096;
/// Maximum counters that one transaction adds to. Other writers wait during a transaction.
const ADDED_AT_ONCE: usize = 5_000;

/// Range of hours. The end is exclusive.
pub type Span = std::ops::Range<Hour>;

/// Length of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// One hour, from minute 0.
    Hour,
    /// One day, from midnight to midnight UTC.
    Day,
}

/// Amounts of one hour or day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// First hour of the bucket.
    pub start: Hour,
    /// Amounts counted in the bucket.
    pub amounts: Amounts,
}

/// Usage of one tenant over a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Amounts over the whole span.
    pub total: Amounts,
    /// Buckets of the span, oldest first, without empty ones.
    pub buckets: Vec<Bucket>,
}

type Waiting = HashMap<TenantId, BTreeMap<Hour, Amounts>>;

/// Usage of all tenants.
pub struct Ledger {
    store: Arc<dyn Store>,
    parts: [Mutex<Part>; PARTS],
    hasher: RandomState,
    /// Additions that found no room since [`Ledger::take_lost`] was last called.
    lost: AtomicU64,
    searches: Searches,
    /// Searches that were decided since [`Ledger::take_decided`] was last called.
    hits: AtomicU64,
    misses: AtomicU64,
    /// Lock that allows one flush at a time. A caller that waited for another flush sees everything that it wrote.
    flushing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Part {
    waiting: Waiting,
    /// Number of hours in `waiting`, over all tenants.
    hours: usize,
}

impl Part {
    /// Adds amounts and returns true if there was room.
    fn add(&mut self, tenant: &TenantId, hour: Hour, amounts: &Amounts) -> bool {
        if let Some(sum) = self.waiting.get_mut(tenant).and_then(|hours| hours.get_mut(&hour)) {
            sum.add(amounts);
            return true;
        }
        if self.hours >= WAITING_MAX {
            return false;
        }
        self.hours += 1;
        self.waiting.entry(tenant.clone()).or_default().entry(hour).or_default().add(amounts);
        true
    }
}

impl Ledger {
    /// Creates a ledger kept in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (parts, hasher, lost, flushing) = Default::default();
        let (searches, hits, misses) = Default::default();
        Self { store, parts, hasher, lost, searches, hits, misses, flushing }
    }

    /// Counts amounts in the current hour.
    pub fn count(&self, tenant: &TenantId, amounts: &Amounts) {
        self.count_at(tenant, self.hour(), amounts);
    }

    /// Counts a search that showed a principal these tools.
    pub fn searched(
        &self,
        tenant: &TenantId,
        principal: &str,
        tools: impl Iterator<Item = ToolKey>,
    ) {
        let decided = self.searches.searched(tenant, principal, tools, Instant::now());
        self.decide(tenant, &decided);
    }

    /// Counts what a principal's allowed calls say of its searches.
    pub fn called(&self, tenant: &TenantId, principal: &str, tools: impl Iterator<Item = ToolKey>) {
        let decided = self.searches.called(tenant, principal, tools);
        self.decide(tenant, &decided);
    }

    fn decide(&self, tenant: &TenantId, decided: &Amounts) {
        self.hits.fetch_add(decided.search_hits, Ordering::Relaxed);
        self.misses.fetch_add(decided.search_misses, Ordering::Relaxed);
        if *decided != Amounts::default() {
            self.count(tenant, decided);
        }
    }

    /// Returns the hits and misses among the searches that were decided since the last call.
    pub(super) fn take_decided(&self) -> (u64, u64) {
        (self.hits.swap(0, Ordering::Relaxed), self.misses.swap(0, Ordering::Relaxed))
    }

    /// Returns the current hour by the store's clock. A replica with a wrong clock must neither delete recent usage nor
    /// count in the wrong hours.
    pub fn hour(&self) -> Hour {
        hour_of(moment(self.store.clock_ms()))
    }

    /// Counts amounts in `hour`.
    pub fn count_at(&self, tenant: &TenantId, hour: Hour, amounts: &Amounts) {
        if !self.part(tenant).add(tenant, hour, amounts) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of additions that were lost since the last call, because too much was waiting for the store.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Writes the waiting amounts to the store. The write continues even if the caller stops waiting.
    ///
    /// # Errors
    /// The store can't be written. Unwritten amounts wait for the next flush.
    pub async fn flush(self: &Arc<Self>) -> Result<(), Error> {
        for (tenant, decided) in self.searches.expired(Instant::now()) {
            self.decide(&tenant, &decided);
        }
        let turn = Arc::clone(&self.flushing).lock_owned().await;
        let ledger = Arc::clone(self);
        let write = tokio::spawn(async move {
            let written = ledger.write_all().await;
            drop(turn);
            written
        });
        Ok(write.await.map_err(Error::internal)??)
    }

    /// Deletes usage older than `hour`.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn forget(&self, hour: Hour) -> Result<(), Error> {
        Ok(self.store.forget_usage(hour).await?)
    }

    /// Returns the tenant's usage within `span`, including everything counted until now.
    ///
    /// # Errors
    /// An unknown tenant, a store that can't be read or written, or more than [`BUCKETS_MAX`] buckets.
    pub async fn read(
        self: &Arc<Self>,
        tenant: &TenantId,
        span: Span,
        buckets: Option<Granularity>,
    ) -> Result<Usage, Error> {
        if self.store.revision(tenant).await?.is_none() {
            return Err(Error::TenantNotFound(tenant.as_str().to_owned()));
        }
        self.flush().await?;
        let width = if buckets == Some(Granularity::Hour) { 1 } else { HOURS_OF_A_DAY };
        let counts = self.store.read_usage(tenant, span, width).await?;
        let mut usage = Usage::default();
        for UsageCount { hour, item, amount } in counts {
            usage.total.add_item(&item, amount);
            if usage.buckets.last().is_none_or(|bucket| bucket.start != hour) {
                usage.buckets.push(Bucket { start: hour, amounts: Amounts::default() });
            }
            if let Some(bucket) = usage.buckets.last_mut() {
                bucket.amounts.add_item(&item, amount);
            }
        }
        if buckets.is_none() {
            usage.buckets.clear();
        }
        if usage.buckets.len() > BUCKETS_MAX {
            let problem = format!(
                "would give {} buckets, more than {BUCKETS_MAX}: ask for a shorter span or for days",
                usage.buckets.len()
            );
            return Err(Error::field("granularity", problem));
        }
        Ok(usage)
    }

    async fn write_all(&self) -> Result<(), StoreError> {
        for part in &self.parts {
            let taken = std::mem::take(&mut *part.lock());
            let entries: Vec<_> = taken
                .waiting
                .into_iter()
                .flat_map(|(tenant, hours)| in_hours(&tenant, hours))
                .collect();
            let mut left = entries.as_slice();
            while !left.is_empty() {
                let (now, later) = left.split_at(fitting(left));
                if let Err(error) = self.store.add_usage(&additions(now)).await {
                    // If only the store's answer was lost, these amounts are counted twice.
                    self.put_back(left);
                    return Err(error);
                }
                left = later;
            }
        }
        Ok(())
    }

    fn put_back(&self, entries: &[Entry]) {
        for (tenant, hour, amounts) in entries {
            self.count_at(tenant, *hour, amounts);
        }
    }

    fn part(&self, tenant: &TenantId) -> MutexGuard<'_, Part> {
        let hash = self.hasher.hash_one(tenant) as usize;
        self.parts[hash % PARTS].lock()
    }
}

type Entry = (TenantId, Hour, Amounts);

fn in_hours(tenant: &TenantId, hours: BTreeMap<Hour, Amounts>) -> Vec<Entry> {
    hours.into_iter().map(|(hour, amounts)| (tenant.clone(), hour, amounts)).collect()
}

/// Returns the number of leading entries for one transaction, at least one.
fn fitting(entries: &[Entry]) -> usize {
    let mut counters = 0;
    let fits = entries.iter().take_while(|(_, _, amounts)| {
        counters += amounts.items().len();
        counters <= ADDED_AT_ONCE
    });
    fits.count().max(1)
}

fn additions(entries: &[Entry]) -> Vec<UsageAddition> {
    let of_entry = |(tenant, hour, amounts): &Entry| {
        let tenant = tenant.clone();
        let hour = *hour;
        amounts.items().into_iter().map(move |(item, amount)| UsageAddition {
            tenant: tenant.clone(),
            count: UsageCount { hour, item, amount },
        })
    };
    entries.iter().flat_map(of_entry).collect()
}

/// Returns the hour of a moment, counted since 1970 (UTC). Earlier moments give 0.
#[must_use]
pub fn hour_of(moment: SystemTime) -> Hour {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Hour::try_from(since.as_secs() / SECONDS_OF_AN_HOUR).unwrap_or(Hour::MAX)
}
