//! CPU share of background work, so that one tenant's thousands of tools don't delay the calls of another. The work
//! gets half of the cores, runs on threads of lower priority, and takes one piece of work of each tenant at a time.
//! Registrations and large shards use one share; compiling schemas for Gate uses another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, Semaphore, oneshot};
pub use toolgate_encoder::Behind;
use toolgate_encoder::give_way;

use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Number of tenants from which on turns without waiters are dropped.
const TURNS_KEPT: usize = 256;

/// Share of the CPU cores.
#[derive(Debug)]
pub struct Share {
    permits: Arc<Semaphore>,
    turns: Mutex<HashMap<TenantId, Arc<Turn<()>>>>,
    begun: AtomicU64,
}

impl Default for Share {
    fn default() -> Self {
        Self::of(thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Share {
    /// Creates a share of half of `cores`, and of at least one core.
    #[must_use]
    pub fn of(cores: usize) -> Self {
        let permits = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { permits, turns: Mutex::default(), begun: AtomicU64::new(0) }
    }

    /// Runs `work` once the tenant has its turn and a core is free. Waiting tenants are served in order, no matter how
    /// much work one of them has queued. The thread runs at lower priority than the work named by `behind`. Work that
    /// has begun is finished and holds its core until then, even if the caller stops waiting.
    ///
    /// # Errors
    /// [`Error::Internal`] if the work panics, or if no thread can be started for it.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: &TenantId,
        behind: Behind,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turn(tenant).lock_owned().await;
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(Error::internal)?;
        self.begun.fetch_add(1, Ordering::Relaxed);
        let (done, outcome) = oneshot::channel();
        let thread = thread::Builder::new().name("giving-way".to_owned());
        let spawned = thread.spawn(move || {
            give_way(behind);
            let result = work();
            drop(permit);
            drop(turn);
            // Sending fails if the caller no longer waits.
            drop(done.send(result));
        });
        spawned.map_err(Error::internal)?;
        outcome.await.map_err(Error::internal)
    }

    /// Returns the number of pieces of work that have begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    fn turn(&self, tenant: &TenantId) -> Arc<Turn<()>> {
        let mut turns = self.turns.lock();
        if turns.len() >= TURNS_KEPT {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(tenant.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a name")
    }

    #[test]
    fn half_of_the_cores_and_one_at_least() {
        for (cores, permits) in [(1, 1), (2, 1), (3, 1), (8, 4)] {
            assert_eq!(Share::of(cores).permits.available_permits(), permits, "{cores}");
        }
    }

    #[tokio::test]
    async fn a_tenant_with_much_in_hand_waits_for_one_with_little() {
        let share = Arc::new(Share::of(2));
        let (finish, gate) = mpsc::channel::<()>();
        let (said, order) = mpsc::channel();
        let mut gate = Some(gate);
        let mut running = Vec::new();
        for (name, part) in [("large", 1), ("large", 2), ("large", 3), ("small", 1)] {
            let share = Arc::clone(&share);
            let said = said.clone();
            let gate = gate.take();
            running.push(tokio::spawn(async move {
                let work = move || {
                    if let Some(gate) = gate {
                        gate.recv().expect("it is opened");
                    }
                    said.send((name, part)).expect("somebody listens");
                };
                share.run(&tenant(name), Behind::Embedding, work).await
            }));
            // The runtime has one thread: each task waits for its turn or its core before the next one is spawned.
            tokio::task::yield_now().await;
        }
        assert_eq!(share.permits.available_permits(), 0);
        finish.send(()).expect("the first waits");
        for task in running {
            task.await.expect("no panic").expect("it ran");
        }
        drop(said);
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, [("large", 1), ("small", 1), ("large", 2), ("large", 3)]);
        assert_eq!(share.permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn who_leaves_or_panics_gives_the_core_back() {
        let share = Share::of(1);
        let (finish, gate) = mpsc::channel::<()>();
        let tenant = tenant("a");
        let stuck = share.run(&tenant, Behind::Answers, move || gate.recv());
        let left = tokio::time::timeout(std::time::Duration::ZERO, stuck);
        assert!(left.await.is_err(), "it waits for the gate");
        finish.send(()).expect("it has begun");
        assert!(
            share
                .run(&tenant, Behind::Answers, || "x".parse::<u8>().expect("on purpose"))
                .await
                .is_err()
        );
        assert_eq!(share.run(&tenant, Behind::Answers, || 3).await.expect("it runs"), 3);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn its_threads_give_way() {
        let priority = || rustix::process::getpriority_process(None).expect("its own");
        let share = Share::of(1);
        let [answers, embedding] = [Behind::Answers, Behind::Embedding];
        let awaited = share.run(&tenant("a"), answers, priority).await.expect("it runs");
        let not = share.run(&tenant("a"), embedding, priority).await.expect("it runs");
        assert!(awaited > priority() || awaited == 19, "{awaited}");
        assert!(not > awaited || not == 19, "{not}");
    }
}
