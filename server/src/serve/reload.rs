//! Changes while the server runs. On SIGHUP the configuration is read again, and the live keys among the changed ones
//! take effect. Keys that need a restart are logged. A configuration with a mistake changes nothing.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_telemetry::LogFilter;
use tracing::{error, info, warn};

use super::{ServeError, vetting};
use toolgate_access::admission::Admission;
use toolgate_app::logging;
use toolgate_app::telemetry::Metrics;
use toolgate_config::{Config, LimitsConfig, Parsed, Settings};
use toolgate_core::deferral::Policy;
use toolgate_core::live::Live;
use toolgate_routing::catalog::vetting::Vetting;

/// Function that reads the configuration again. The error is a text for the log.
pub type Reread<'a> = &'a (dyn Fn() -> Result<Parsed, String> + Sync);

/// Receivers of changes while the server runs.
#[derive(Clone)]
pub(super) struct Changes {
    /// Signals that files must be read again, even if the configuration has not changed.
    pub(super) hangups: watch::Receiver<()>,
    /// The configuration that was read last.
    pub(super) config: watch::Receiver<Arc<Config>>,
}

/// Sender of changes to every [`Changes`].
pub(super) struct Teller {
    hangups: watch::Sender<()>,
    config: watch::Sender<Arc<Config>>,
}

/// Creates a connected sender and receiver. `config` is the first configuration.
pub(super) fn channel(config: &Config) -> (Teller, Changes) {
    let (hangups, hung_up) = watch::channel(());
    let (sender, receiver) = watch::channel(Arc::new(config.clone()));
    (Teller { hangups, config: sender }, Changes { hangups: hung_up, config: receiver })
}

/// Rereads the configuration on each SIGHUP and never returns. `started` are the settings at the start of the server. Without
/// a `filter`, what is logged stays as it is.
pub(super) async fn on_hangup(
    started: &Settings,
    reread: Reread<'_>,
    filter: Option<&LogFilter>,
    teller: &Teller,
) {
    let mut hangups = match Hangups::listen() {
        Ok(hangups) => hangups,
        Err(problem) => {
            error!(%problem, "SIGHUP can't be waited for: the configuration is not read again");
            return std::future::pending().await;
        }
    };
    let mut before = started.clone();
    loop {
        hangups.next().await;
        teller.hangups.send_replace(());
        match reread() {
            Ok(parsed) => {
                tell(started, &before, &parsed.settings);
                if let Some(filter) = filter {
                    filter.replace(&logging::filter(parsed.config.log));
                }
                before = parsed.settings;
                teller.config.send_replace(Arc::new(parsed.config));
            }
            Err(problem) => error!(problem, "the configuration has mistakes: nothing was changed"),
        }
    }
}

/// Logs the keys with new values, and those of them that take effect only at the next start.
fn tell(started: &Settings, before: &Settings, now: &Settings) {
    let names = |one: &Settings, is_live| -> String {
        let keys = one.differing(now).into_iter().filter(|key| key.is_live == is_live);
        keys.map(|key| key.name).collect::<Vec<_>>().join(", ")
    };
    let changed = names(before, true);
    info!(changed, "the configuration was read again");
    let waiting = names(started, false);
    if !waiting.is_empty() {
        warn!(keys = waiting, "these have new values, which take effect at the next start");
    }
}

/// Parts of the server that follow the configuration.
pub(super) struct Held {
    pub(super) deferral: Arc<Live<Policy>>,
    pub(super) limits: Arc<Live<LimitsConfig>>,
    pub(super) vetting: Option<Vetting>,
}

impl Held {
    /// Builds the parts from the configuration at the start.
    pub(super) fn new(config: &Config, metrics: &Metrics) -> Result<Self, ServeError> {
        let deferral = Live::new(config.deferral.clone());
        let limits = Live::new(config.limits);
        let vetting = vetting::vetting(&config.safety, metrics)?;
        Ok(Self { deferral: Arc::new(deferral), limits: Arc::new(limits), vetting })
    }

    /// Applies each new configuration to the parts, until `over`.
    pub(super) async fn follow(
        self,
        admission: Admission,
        changes: Changes,
        over: CancellationToken,
    ) {
        let Changes { hangups, config: mut configs } = changes;
        let safety = configs.borrow().safety.clone();
        let rules = vetting::follow(self.vetting.clone(), safety, hangups, over.clone());
        let configs = async {
            while over.run_until_cancelled(configs.changed()).await.is_some_and(|told| told.is_ok())
            {
                let config = Arc::clone(&configs.borrow_and_update());
                self.deferral.replace(config.deferral.clone());
                self.limits.replace(config.limits);
                admission.reconfigure(config.server.admission);
            }
        };
        tokio::join!(rules, configs);
    }
}

/// Listener for SIGHUP. On systems without it, no signal ever arrives.
pub(crate) struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    #[cfg(unix)]
    pub(crate) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signal: signal(SignalKind::hangup())? })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "other systems can fail")]
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
