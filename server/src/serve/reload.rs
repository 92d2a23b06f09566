//! What may change while the server runs: on SIGHUP the configuration is read again, and the keys that may change take
//! effect; which others would need a restart is told. A configuration with a mistake changes nothing.

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

/// Reads the configuration again; what is wrong with it, in words.
pub type Reread<'a> = &'a (dyn Fn() -> Result<Parsed, String> + Sync);

/// What changes while the server runs, for those who follow it.
#[derive(Clone)]
pub(super) struct Changes {
    /// That files are to be read again, whatever the configuration says.
    pub(super) hangups: watch::Receiver<()>,
    /// The configuration as it was last read.
    pub(super) config: watch::Receiver<Arc<Config>>,
}

/// Whoever tells of changes.
pub(super) struct Teller {
    hangups: watch::Sender<()>,
    config: watch::Sender<Arc<Config>>,
}

/// A way for changes to reach those who follow them; `config` is the first.
pub(super) fn channel(config: &Config) -> (Teller, Changes) {
    let (hangups, hung_up) = watch::channel(());
    let (sender, receiver) = watch::channel(Arc::new(config.clone()));
    (Teller { hangups, config: sender }, Changes { hangups: hung_up, config: receiver })
}

/// Follows the configuration for ever; `started` are the settings that the server began with.
pub(super) async fn on_hangup(
    started: &Settings,
    reread: Reread<'_>,
    filter: &LogFilter,
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
                filter.replace(&logging::filter(parsed.config.log));
                before = parsed.settings;
                teller.config.send_replace(Arc::new(parsed.config));
            }
            Err(problem) => error!(problem, "the configuration has mistakes: nothing was changed"),
        }
    }
}

/// Says which keys have other values, and which of them take effect only at the next start.
fn tell(started: &Settings, before: &Settings, now: &Settings) {
    let names = |one: &Settings, is_live| -> String {
        let keys = one.differing(now).into_iter().filter(|key| key.is_live() == is_live);
        keys.map(|key| key.name).collect::<Vec<_>>().join(", ")
    };
    let changed = names(before, true);
    info!(changed, "the configuration was read again");
    let waiting = names(started, false);
    if !waiting.is_empty() {
        warn!(keys = waiting, "these have new values, which take effect at the next start");
    }
}

/// Parts of the server that are held to the configuration as it is now.
pub(super) struct Held {
    pub(super) deferral: Arc<Live<Policy>>,
    pub(super) limits: Arc<Live<LimitsConfig>>,
    pub(super) vetting: Option<Vetting>,
}

impl Held {
    /// Held to what the server begins with.
    pub(super) fn new(config: &Config, metrics: &Metrics) -> Result<Self, ServeError> {
        let deferral = Live::new(config.deferral.clone());
        let limits = Live::new(config.limits);
        let vetting = vetting::vetting(&config.safety, metrics)?;
        Ok(Self { deferral: Arc::new(deferral), limits: Arc::new(limits), vetting })
    }

    /// Holds all to each configuration that comes, until `over`.
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
