//! Compiled schemas, and the compilation of those of shown tools before a call needs them. It runs beside the calls, on threads that give
//! way to them, and in pieces, so that one tenant's heavy schemas do not delay another's.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::schemas::Schemas;
use crate::catalog::share::{Behind, Share};
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::TenantId;

/// Units of about 100 ns after which a piece of work begins no further schema: ten milliseconds.
pub(super) const PIECE_UNITS: usize = 100_000;

/// Maximum number of answers whose schemas wait to be compiled, over all tenants. Schemas of further answers are
/// compiled when they are called.
const WAITING_MAX: usize = 256;
/// Maximum number of answers of one tenant whose schemas wait to be compiled.
const WAITING_OF_ONE_MAX: usize = 8;

/// Background compiler of schemas, with the cache that it fills. Dropping it ends the work after the current piece.
#[derive(Default)]
pub struct Warmer(Arc<Work>);

#[derive(Default)]
struct Work {
    schemas: Arc<Schemas>,
    share: Share,
    queue: Mutex<Queue>,
    idle: Notify,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Wanted>,
    /// True while a task works on the queue.
    is_at_work: bool,
}

/// Tools of one answer whose schemas are not compiled. The weak reference keeps no outdated shard in memory.
struct Wanted {
    tenant: TenantId,
    snapshot: Weak<Snapshot>,
    /// Slots in reverse order: the last one is next.
    slots: Vec<u32>,
}

impl Warmer {
    /// Returns the cache that the schemas are compiled into.
    pub(super) fn schemas(&self) -> &Arc<Schemas> {
        &self.0.schemas
    }

    /// Returns the share of the cores in which schemas are compiled.
    pub(super) fn share(&self) -> &Share {
        &self.0.share
    }

    /// Queues the schemas that are not compiled yet, if there is room.
    pub(crate) fn want(
        &self,
        tenant: &TenantId,
        snapshot: &Arc<Snapshot>,
        slots: impl DoubleEndedIterator<Item = u32>,
    ) {
        let is_missing = |slot: &u32| self.0.schemas.kept(tenant, snapshot.tool(*slot)).is_none();
        let slots: Vec<u32> = slots.rev().filter(is_missing).collect();
        if slots.is_empty() {
            return;
        }
        let wanted = Wanted { tenant: tenant.clone(), snapshot: Arc::downgrade(snapshot), slots };
        if self.0.queue.lock().add(wanted) {
            tokio::spawn(go_on(Arc::downgrade(&self.0)));
        }
    }

    /// Waits until nothing is left to compile.
    pub(super) async fn idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if !self.0.queue.lock().is_at_work {
                return;
            }
            idle.await;
        }
    }
}

impl Queue {
    /// Adds an entry if there is room. Returns true if no task works on the queue yet; the caller must then start one.
    fn add(&mut self, wanted: Wanted) -> bool {
        let of_tenant = self.waiting.iter().filter(|other| other.tenant == wanted.tenant).count();
        if self.waiting.len() >= WAITING_MAX || of_tenant >= WAITING_OF_ONE_MAX {
            return false;
        }
        self.waiting.push_back(wanted);
        !std::mem::replace(&mut self.is_at_work, true)
    }

    /// Takes the entry that has waited longest. If there is none, the queue is marked as idle.
    fn next(&mut self) -> Option<Wanted> {
        let next = self.waiting.pop_front();
        self.is_at_work = next.is_some();
        next
    }
}

/// Compiles one piece of each answer in turn, until nothing waits or the warmer is dropped.
async fn go_on(work: Weak<Work>) {
    while let Some(work) = work.upgrade() {
        let next = work.queue.lock().next();
        let Some(wanted) = next else {
            work.idle.notify_waiters();
            return;
        };
        let tenant = wanted.tenant.clone();
        let schemas = Arc::clone(&work.schemas);
        match work.share.run(&tenant, Behind::Answers, move || wanted.piece(&schemas)).await {
            Ok(None) => {}
            // The rest is not refused for lack of room, because it already had a place.
            Ok(Some(rest)) => work.queue.lock().waiting.push_back(rest),
            Err(error) => warn!(%error, "schemas are compiled when they are called"),
        }
    }
}

impl Wanted {
    /// Compiles schemas for one piece of work, and returns the rest; `None` if nothing is left.
    fn piece(mut self, schemas: &Schemas) -> Option<Self> {
        let snapshot = self.snapshot.upgrade()?;
        let mut units = 0;
        while units < PIECE_UNITS {
            let tool = snapshot.tool(self.slots.pop()?);
            if schemas.kept(&self.tenant, tool).is_none() {
                units += schemas.compile(&self.tenant, tool).units();
            }
        }
        (!self.slots.is_empty()).then_some(self)
    }
}
