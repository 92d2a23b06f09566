//! Encoder workers that this server runs itself, one process per device. They are started, restarted when they end, and
//! stopped with the server. Their answers are handled by the pool.

mod command;
mod process;
mod said;
mod search;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub use command::{VISIBLE_GPUS, WorkerCommand};
pub use search::FoundGpus;

use process::Ended;
use toolgate_routing::encoder::EncoderMetrics;

/// Time limits and restart pauses of the supervisor.
#[derive(Debug, Clone, Copy)]
pub struct SupervisorLimits {
    /// Pause before the first restart. Each further restart waits twice as long as the one before.
    pub pause_min: Duration,
    /// Longest pause before a restart.
    pub pause_max: Duration,
    /// Run time after which a process starts again with the shortest pause.
    pub forgiven_after: Duration,
    /// Time that a process may take to report its address. It is long because GPUs compile their kernels first.
    pub start: Duration,
    /// Time that a process may take to end after SIGTERM.
    pub stop: Duration,
}

impl Default for SupervisorLimits {
    fn default() -> Self {
        Self {
            pause_min: Duration::from_millis(500),
            pause_max: Duration::from_secs(30),
            forgiven_after: Duration::from_secs(60),
            start: Duration::from_secs(180),
            stop: Duration::from_secs(5),
        }
    }
}

/// Worker processes. Dropping this kills them; [`Workers::stop`] lets them finish.
pub struct Workers {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    addresses: watch::Receiver<Vec<String>>,
}

/// Supervisor of one command, which runs one process at a time.
struct Keeper {
    command: WorkerCommand,
    limits: SupervisorLimits,
    addresses: Arc<watch::Sender<Vec<String>>>,
    metrics: EncoderMetrics,
    stop: CancellationToken,
}

impl Workers {
    /// Starts one process per command, in the background. Needs a tokio runtime.
    #[must_use]
    pub fn start(
        commands: Vec<WorkerCommand>,
        limits: SupervisorLimits,
        metrics: &EncoderMetrics,
    ) -> Self {
        let (sender, addresses) = watch::channel(Vec::new());
        let sender = Arc::new(sender);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for command in commands {
            metrics.kept(&command.name);
            let addresses = Arc::clone(&sender);
            let metrics = metrics.clone();
            let keeper = Keeper { command, limits, addresses, metrics, stop: stop.clone() };
            tasks.spawn(keeper.keep());
        }
        Self { stop, tasks, addresses }
    }

    /// Addresses of the processes that are up, updated when one starts or ends.
    #[must_use]
    pub fn addresses(&self) -> watch::Receiver<Vec<String>> {
        self.addresses.clone()
    }

    /// Ends every process: SIGTERM first, then SIGKILL after [`SupervisorLimits::stop`].
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Keeper {
    async fn keep(self) {
        let mut ends_in_a_row = 0;
        loop {
            let began = Instant::now();
            let ended = self.run_once().await;
            if matches!(ended, Ended::Stopped) {
                return;
            }
            if ended.is_final() {
                let worker = self.command.name.as_str();
                error!(worker, %ended, "an encoder worker can't run here and is not started again");
                return;
            }
            if began.elapsed() >= self.limits.forgiven_after {
                ends_in_a_row = 0;
            }
            let pause = self.limits.pause(ends_in_a_row);
            ends_in_a_row = ends_in_a_row.saturating_add(1);
            let worker = self.command.name.as_str();
            warn!(worker, %ended, again_in = ?pause, "an encoder worker process ended");
            if self.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            self.metrics.restarted(worker);
        }
    }

    /// Runs one process until it ends. Its address is listed while it runs.
    async fn run_once(&self) -> Ended {
        let worker = self.command.name.as_str();
        let mut process = match self.command.spawn() {
            Ok(process) => process,
            Err(error) => return Ended::NotStarted(error),
        };
        let listening = tokio::select! {
            () = self.stop.cancelled() => {
                process.stop(self.limits.stop).await;
                return Ended::Stopped;
            }
            listening = tokio::time::timeout(self.limits.start, process.listening()) => listening,
        };
        let address = match listening {
            Ok(Ok(address)) => address,
            Ok(Err(ended)) => return ended,
            Err(_elapsed) => return Ended::Silent,
        };
        info!(worker, address, "an encoder worker process listens");
        self.addresses.send_modify(|all| all.push(address.clone()));
        let ended = self.stop.run_until_cancelled(process.ended()).await;
        // A process that is about to be stopped gets no new requests.
        self.addresses.send_modify(|all| all.retain(|one| *one != address));
        match ended {
            Some(ended) => ended,
            None => {
                process.stop(self.limits.stop).await;
                Ended::Stopped
            }
        }
    }
}

impl SupervisorLimits {
    fn pause(&self, ends_in_a_row: u32) -> Duration {
        let doubled = self.pause_min.saturating_mul(2_u32.saturating_pow(ends_in_a_row));
        doubled.min(self.pause_max)
    }
}
