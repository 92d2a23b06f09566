//! Shutdown: stop signals, and the limit on the time for draining.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Returns the result of `serving`, or `None` if it still runs `drain` after `stop` is cancelled. Tonic itself would
/// wait for its peers for ever (hyper#4170).
pub async fn drained_or_cut<T>(
    serving: impl Future<Output = T>,
    stop: &CancellationToken,
    drain: Duration,
) -> Option<T> {
    let cut = async {
        stop.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        ended = serving => Some(ended),
        () = cut => {
            warn!(?drain, "calls or peers were left after the drain; cut off");
            None
        }
    }
}

/// Cancels `stop` on SIGINT or SIGTERM, so that the process drains. A second signal ends the process at once, with code
/// 130.
pub async fn stop_on_signal(stop: CancellationToken) {
    signal().await;
    info!("stopping: draining calls in progress; a second signal ends the process at once");
    stop.cancel();
    signal().await;
    warn!("stopped at once");
    std::process::exit(130);
}

/// Waits for SIGINT or SIGTERM.
async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(error) => {
                warn!(%error, "SIGTERM can't be waited for");
                drop(interrupt.await);
            }
        }
    }
    #[cfg(not(unix))]
    drop(interrupt.await);
}
