//! The ledger itself: amounts wait in memory, by tenant and hour, until they are flushed to the store.
//! Counting never waits for the store and never fails; what a crash takes is what came since the last flush.

use std::collections::{BTreeMap, HashMap, hash_map::RandomState};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::amounts::Amounts;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::{Hour, Store, StoreError, UsageAddition, UsageCount, moment};

/// The most buckets of one answer.
pub const BUCKETS_MAX: usize = 10_000;

const SECONDS_OF_AN_HOUR: u64 = 3_600;
const HOURS_OF_A_DAY: Hour = 24;
/// Counting locks one of these for some tens of nanoseconds.
const PARTS: usize = 16;
/// Hours that wait for a store that fails, in each part; what comes beyond is not counted.
const WAITING_MAX: usize = 4_096;
/// Counters that one transaction adds to: others wait to write meanwhile.
const ADDED_AT_ONCE: usize = 5_000;

/// The hours to count, the last one not included.
pub type Span = std::ops::Range<Hour>;

/// How long buckets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// One hour.
    Hour,
    /// From midnight to midnight UTC.
    Day,
}

/// What was counted in one hour or day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The hour it begins with.
    pub start: Hour,
    /// What was counted.
    pub amounts: Amounts,
}

/// What a tenant used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Over the whole span.
    pub total: Amounts,
    /// Its parts, oldest first, without those in which nothing happened.
    pub buckets: Vec<Bucket>,
}

type Waiting = HashMap<TenantId, BTreeMap<Hour, Amounts>>;

/// What all tenants used.
pub struct Ledger {
    store: Arc<dyn Store>,
    parts: [Mutex<Part>; PARTS],
    hasher: RandomState,
    /// What found no room since somebody asked.
    lost: AtomicU64,
    /// One flush at a time: who waited for another's sees what that one wrote.
    flushing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Part {
    waiting: Waiting,
    /// Hours of tenants in `waiting`.
    hours: usize,
}

impl Part {
    /// Whether there was room.
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
    /// A ledger kept in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (parts, hasher, lost, flushing) = Default::default();
        Self { store, parts, hasher, lost, flushing }
    }

    /// Counts something that happened now.
    pub fn count(&self, tenant: &TenantId, amounts: &Amounts) {
        self.count_at(tenant, self.hour(), amounts);
    }

    /// Returns the present hour by the store's clock: a replica with a wrong one must neither forget what is young nor
    /// count in hours of its own.
    pub fn hour(&self) -> Hour {
        hour_of(moment(self.store.clock_ms()))
    }

    /// Counts something that happened in `hour`.
    pub fn count_at(&self, tenant: &TenantId, hour: Hour, amounts: &Amounts) {
        if !self.part(tenant).add(tenant, hour, amounts) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often something was not counted, since this was last asked: too much waited for the store.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Writes what waits to the store. It goes on when the caller stops waiting for it.
    ///
    /// # Errors
    /// The store can't be written. What was not written waits for the next flush.
    pub async fn flush(self: &Arc<Self>) -> Result<(), Error> {
        let turn = Arc::clone(&self.flushing).lock_owned().await;
        let ledger = Arc::clone(self);
        let write = tokio::spawn(async move {
            let written = ledger.write_all().await;
            drop(turn);
            written
        });
        Ok(write.await.map_err(Error::internal)??)
    }

    /// Forgets what is older than `hour`.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn forget(&self, hour: Hour) -> Result<(), Error> {
        Ok(self.store.forget_usage(hour).await?)
    }

    /// What the tenant used within `span`, all that was counted until now included.
    ///
    /// # Errors
    /// An unknown tenant, a store that can't be read or written, more than [`BUCKETS_MAX`] buckets.
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
            let taken = std::mem::take(&mut *locked(part));
            let entries: Vec<_> = taken.waiting.into_iter().flat_map(in_hours).collect();
            let mut left = entries.as_slice();
            while !left.is_empty() {
                let (now, later) = left.split_at(fitting(left));
                if let Err(error) = self.store.add_usage(&additions(now)).await {
                    // If only the store's answer was lost, these are counted twice.
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
        locked(&self.parts[hash % PARTS])
    }
}

type Entry = (TenantId, Hour, Amounts);

/// Nothing in here panics with the lock held, and sums are whole between statements anyway.
fn locked(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_hours((tenant, hours): (TenantId, BTreeMap<Hour, Amounts>)) -> Vec<Entry> {
    hours.into_iter().map(|(hour, amounts)| (tenant.clone(), hour, amounts)).collect()
}

/// How many of the entries one transaction takes; at least one.
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

/// The hour that a moment is in; the first one for moments before 1970.
#[must_use]
pub fn hour_of(moment: SystemTime) -> Hour {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Hour::try_from(since.as_secs() / SECONDS_OF_AN_HOUR).unwrap_or(Hour::MAX)
}
