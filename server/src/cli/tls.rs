//! TLS of listeners that have no other configuration than their files.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use toolgate_serving::{Tls, TlsFiles};

use super::failure::Failure;
use super::serve::with_causes;

/// Interval at which the files are looked at.
const LOOKED_AT: Duration = Duration::from_secs(5);

/// Reads the files of TLS, and keeps them up to date until `stop`. `section` names them in errors, such as `gateway.tls`.
pub(super) fn start(
    files: TlsFiles,
    section: &'static str,
    stop: &CancellationToken,
) -> Result<Arc<Tls>, Failure> {
    let tls = Tls::load(files)
        .map_err(|error| Failure::usage(format!("{section}: {}", with_causes(&error))))?;
    let tls = Arc::new(tls);
    let followed = stop.clone().run_until_cancelled_owned(follow(Arc::clone(&tls), section));
    tokio::spawn(followed);
    Ok(tls)
}

/// Takes new certificates for new connections. Those that are no good are told once, and change nothing.
async fn follow(tls: Arc<Tls>, section: &'static str) {
    let mut turns = interval(LOOKED_AT);
    let mut told = String::new();
    loop {
        turns.tick().await;
        let reading = Arc::clone(&tls);
        match tokio::task::spawn_blocking(move || reading.reload()).await {
            Ok(Ok(true)) => {
                told.clear();
                tracing::info!(section, "the certificates are other ones now");
            }
            Ok(Err(problem)) if problem.to_string() != told => {
                told = problem.to_string();
                tracing::error!(section, %problem, "new certificates are not good: those before stay");
            }
            Ok(_) => {}
            Err(problem) => tracing::error!(%problem, "certificates can't be looked at"),
        }
    }
}
