//! Encoder workers that this server runs itself, one process per device: started, started again when they
//! end, stopped with the server. What they answer is the pool's concern.

mod command;
mod process;
mod said;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub use command::WorkerCommand;

use process::Ended;
use toolgate_routing::encoder::EncoderMetrics;

/// How patient the supervisor is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Before the first new start; each further one waits twice as long as the one before.
    pub pause_min: Duration,
    /// The longest that a new start waits.
    pub pause_max: Duration,
    /// A process that ran this long begins with the shortest pause again.
    pub forgiven_after: Duration,
    /// How long a process may take until it says where it listens: GPUs compile their kernels first.
    pub start: Duration,
    /// How long a process may take to end after SIGTERM.
    pub stop: Duration,
}

impl Default for Patience {
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

/// Worker processes. Dropping it kills them; [`Workers::stop`] lets them finish.
pub struct Workers {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    addresses: watch::Receiver<Vec<String>>,
}

/// One process after the other, of one command.
struct Keeper {
    command: WorkerCommand,
    patience: Patience,
    addresses: Arc<watch::Sender<Vec<String>>>,
    metrics: EncoderMetrics,
    stop: CancellationToken,
}

impl Workers {
    /// Starts one process per command, in the background. Needs a tokio runtime.
    #[must_use]
    pub fn start(
        commands: Vec<WorkerCommand>,
        patience: Patience,
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
            let keeper = Keeper { command, patience, addresses, metrics, stop: stop.clone() };
            tasks.spawn(keeper.keep());
        }
        Self { stop, tasks, addresses }
    }

    /// Where the processes listen that are up.
    #[must_use]
    pub fn addresses(&self) -> watch::Receiver<Vec<String>> {
        self.addresses.clone()
    }

    /// Ends every process: SIGTERM, and SIGKILL for those that take too long.
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
            if began.elapsed() >= self.patience.forgiven_after {
                ends_in_a_row = 0;
            }
            let pause = self.patience.pause(ends_in_a_row);
            ends_in_a_row = ends_in_a_row.saturating_add(1);
            let worker = self.command.name.as_str();
            warn!(worker, %ended, again_in = ?pause, "an encoder worker process ended");
            if self.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            self.metrics.restarted(worker);
        }
    }

    /// Runs one process to its end, whatever that is; its address is known as long as it lives.
    async fn run_once(&self) -> Ended {
        let worker = self.command.name.as_str();
        let mut process = match self.command.spawn() {
            Ok(process) => process,
            Err(error) => return Ended::NotStarted(error),
        };
        let listening = tokio::select! {
            () = self.stop.cancelled() => {
                process.stop(self.patience.stop).await;
                return Ended::Stopped;
            }
            listening = tokio::time::timeout(self.patience.start, process.listening()) => listening,
        };
        let address = match listening {
            Ok(Ok(address)) => address,
            Ok(Err(ended)) => return ended,
            Err(_elapsed) => return Ended::Silent,
        };
        info!(worker, address, "an encoder worker process listens");
        self.addresses.send_modify(|all| all.push(address.clone()));
        let ended = self.stop.run_until_cancelled(process.ended()).await;
        // Nothing new goes to a process that is told to end.
        self.addresses.send_modify(|all| all.retain(|one| *one != address));
        match ended {
            Some(ended) => ended,
            None => {
                process.stop(self.patience.stop).await;
                Ended::Stopped
            }
        }
    }
}

impl Patience {
    fn pause(&self, ends_in_a_row: u32) -> Duration {
        let doubled = self.pause_min.saturating_mul(2_u32.saturating_pow(ends_in_a_row));
        doubled.min(self.pause_max)
    }
}
