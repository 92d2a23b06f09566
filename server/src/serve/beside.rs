//! Background tasks that run beside the calls: writing the usage ledger and the memory, following the store, watching
//! the memory of the process. They end after the calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use toolgate_access::admission::AdmissionMetrics;
use toolgate_access::admission::{Admission, watch_memory};
use toolgate_app::plane::Plane;
use toolgate_app::telemetry::Metrics;
use toolgate_config::Config;
use toolgate_routing::memory;
use toolgate_routing::usage;

/// Background tasks that run until `over`.
pub(super) struct Beside {
    over: CancellationToken,
    tasks: Vec<(&'static str, JoinHandle<()>)>,
}

impl Beside {
    /// Starts the tasks that every server runs.
    pub(super) fn start(config: &Config, plane: &Arc<Plane>, metrics: &Arc<Metrics>) -> Self {
        let over = CancellationToken::new();
        let mut beside = Self { over: over.clone(), tasks: Vec::new() };
        let ledger = Arc::clone(&plane.usage);
        let usage = usage::keep(ledger, config.usage, metrics.usage(), over.clone());
        beside.spawn("usage ledger", usage);
        let every = config.memory.refresh_interval;
        beside.spawn("memory", memory::keep(Arc::clone(&plane.memory), every, over.clone()));
        let shared = config.store.shared.as_ref();
        let every = shared.map_or(Duration::MAX, |shared| shared.poll_interval);
        beside.spawn("following of the store", Arc::clone(plane).keep_up(every, over));
        beside
    }

    /// Spawns a task. The task must end when `over` is cancelled.
    pub(super) fn spawn(
        &mut self,
        what: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.push((what, tokio::spawn(task)));
    }

    /// Builds the admission control of calls, and watches the memory of the process for it.
    pub(super) fn admission(&mut self, config: &Config, metrics: &AdmissionMetrics) -> Admission {
        let admission = Admission::new(config.server.admission);
        let shown = admission.clone();
        metrics.show(move || {
            let reading = shown.reading();
            [reading.under_way, reading.interactive, reading.limit]
        });
        let watching = watch_memory(admission.memory_flag(), config.server.max_memory);
        let watching = self.over.clone().run_until_cancelled_owned(watching);
        self.spawn("watch over memory", async move {
            watching.await;
        });
        admission
    }

    /// Returns the token that is cancelled when the tasks must end.
    pub(super) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Ends the tasks, and waits until they have written what is left.
    pub(super) async fn end(self) {
        self.over.cancel();
        for (what, task) in self.tasks {
            if let Err(error) = task.await {
                warn!(%error, "the {what} failed");
            }
        }
    }
}
