//! What may change while the server runs: on SIGHUP the configuration is read again, and its deferral
//! settings take effect. A configuration with a mistake changes nothing.

use tokio::sync::watch;
use tracing::{error, info};

use crate::config::Config;
use crate::deferral::Live;

/// Reads the configuration again; what is wrong with it, in words.
pub type Reread<'a> = &'a (dyn Fn() -> Result<Config, String> + Sync);

/// Follows the configuration for ever.
pub(super) async fn on_hangup(live: &Live, reread: Reread<'_>, told: &watch::Sender<()>) {
    let mut hangups = match Hangups::listen() {
        Ok(hangups) => hangups,
        Err(problem) => {
            error!(%problem, "SIGHUP can't be waited for: the configuration is not read again");
            return std::future::pending().await;
        }
    };
    loop {
        hangups.next().await;
        // Files that are followed are read again, whatever the configuration says.
        told.send_replace(());
        match reread() {
            Ok(config) => {
                live.replace(config.deferral);
                info!("deferral settings read again; other settings take effect at the next start");
            }
            Err(problem) => error!(problem, "the configuration has mistakes: nothing was changed"),
        }
    }
}

/// SIGHUP, where there is such a thing.
struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signal: signal(SignalKind::hangup())? })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "other systems can fail")]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
