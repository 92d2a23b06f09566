//! Source of the issuer's keys: a file that is read every few seconds, or an https URL that is fetched in the
//! background. While neither gives keys, the old ones stay in use, up to their maximum age.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::key_set::{KeySet, SET_BYTES_MAX};

/// Interval between reads of a file.
const FILE_INTERVAL: Duration = Duration::from_secs(5);

/// Minimum time between two fetches because of unknown keys, and after a failure.
const AGAIN_MIN: Duration = Duration::from_secs(30);

/// Minimum time between two reads of a file because of unknown keys.
const FILE_AGAIN_MIN: Duration = Duration::from_secs(1);

/// Error for a key set without usable keys.
const NO_KEY: &str = "no key for RS256, ES256 or EdDSA signatures in it";

/// Time limit for a fetch from the issuer.
const FETCH_MAX: Duration = Duration::from_secs(10);

/// Current keys of the issuer.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) set: KeySet,
    /// Number that changes whenever the keys change.
    pub(super) generation: u64,
}

/// Cheap handle to the keys. [`Follower::run`] keeps them up to date.
#[derive(Clone)]
pub(super) struct Source {
    keys: watch::Receiver<Arc<Published>>,
    asked: Arc<RefreshRequests>,
}

/// Requests for newer keys, which the follower's loop serves.
struct RefreshRequests {
    wanted: Notify,
    /// True if the loop is fetching keys.
    under_way: AtomicBool,
    last: Mutex<Option<Instant>>,
    again_min: Duration,
}

/// Loop that keeps the keys up to date.
pub(super) struct Follower {
    place: JwksOrigin,
    publish: watch::Sender<Arc<Published>>,
    asked: Arc<RefreshRequests>,
    refresh: Duration,
    /// Text of the current key set.
    text: Vec<u8>,
    /// Time that keys stay valid after they were last fetched.
    max_age: Duration,
    had: Instant,
}

/// Location of the keys.
pub(super) enum JwksOrigin {
    /// File that holds the key set.
    File(PathBuf),
    /// https URL that serves the key set.
    Url {
        /// Address of the key set.
        url: String,
        /// HTTP client that fetches it.
        agent: Agent,
    },
}

impl JwksOrigin {
    /// Creates an https location. Its certificate must come from these authorities (PEM), or from the public ones if
    /// `None`.
    pub(super) fn url(url: &str, authorities: Option<&[u8]>) -> Result<Self, String> {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = authorities {
            let items: Result<Vec<_>, _> = parse_pem(pem).collect();
            let items = items.map_err(|error| format!("no PEM: {error}"))?;
            let certificate = |item| match item {
                PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            };
            let roots: Vec<_> = items.into_iter().filter_map(certificate).collect();
            if roots.is_empty() {
                return Err("no certificate in it".into());
            }
            tls = tls.root_certs(RootCerts::from(roots));
        }
        let agent = Agent::config_builder()
            .https_only(true)
            .max_redirects(0)
            .max_redirects_will_error(true)
            .timeout_global(Some(FETCH_MAX))
            .tls_config(tls.build())
            .build()
            .into();
        Ok(Self::Url { url: url.to_owned(), agent })
    }

    /// Reads the text of the key set. Blocks.
    fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => read_bounded(path, SET_BYTES_MAX),
            Self::Url { url, agent } => {
                let mut answer = agent.get(url).call().map_err(|error| error.to_string())?;
                let body = answer.body_mut().with_config().limit(SET_BYTES_MAX as u64);
                body.read_to_vec().map_err(|error| error.to_string())
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Url { url, .. } => url.clone(),
        }
    }
}

/// Reads a file of at most `most` bytes.
pub(super) fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > most { Err(format!("more than {most} bytes")) } else { Ok(bytes) }
}

impl Source {
    /// Loads the keys from `place` and creates their follower. A file must exist and be valid; a URL may be
    /// unreachable for now. Blocks for a moment.
    pub(super) fn begin(
        place: JwksOrigin,
        refresh: Duration,
        max_age: Duration,
    ) -> Result<(Self, Follower), String> {
        let is_file = matches!(place, JwksOrigin::File(_));
        let read = place.read().and_then(|text| match KeySet::parse(&text)? {
            set if set.is_empty() => Err(NO_KEY.to_owned()),
            set => Ok((set, text)),
        });
        let (set, text) = match read {
            Ok(read) => read,
            Err(problem) if is_file => return Err(problem),
            Err(problem) => {
                let from = place.shown();
                warn!(from, problem, "the issuer's keys can't be had yet: tokens are refused");
                (KeySet::default(), Vec::new())
            }
        };
        let (publish, keys) = watch::channel(Arc::new(Published { set, generation: 0 }));
        let again_min = if is_file { FILE_AGAIN_MIN } else { AGAIN_MIN };
        let asked = Arc::new(RefreshRequests {
            wanted: Notify::new(),
            under_way: AtomicBool::new(false),
            last: Mutex::new(Some(Instant::now())),
            again_min,
        });
        let refresh = if is_file { FILE_INTERVAL } else { refresh };
        let asked_too = Arc::clone(&asked);
        let had = Instant::now();
        let follower = Follower { place, publish, asked: asked_too, refresh, text, max_age, had };
        Ok((Self { keys, asked }, follower))
    }

    /// Returns the current keys.
    pub(super) fn keys(&self) -> Arc<Published> {
        Arc::clone(&self.keys.borrow())
    }

    /// Requests newer keys and returns the keys after the fetch. Returns `None` if it is too soon to fetch again, or
    /// if the fetch takes longer than `longest`.
    pub(super) async fn ask_again(&self, longest: Duration) -> Option<Arc<Published>> {
        let mut keys = self.keys.clone();
        keys.mark_unchanged();
        if !self.asked.may_wait() {
            return None;
        }
        timeout(longest, keys.changed()).await.ok()?.ok()?;
        let newest = Arc::clone(&keys.borrow());
        Some(newest)
    }
}

impl RefreshRequests {
    /// Returns true if keys will arrive soon, because a fetch is running or starts now.
    fn may_wait(&self) -> bool {
        let last = self.last.lock();
        if self.under_way.load(Ordering::Acquire) {
            return true;
        }
        let may = last.is_none_or(|last| last.elapsed() >= self.again_min);
        if may {
            self.under_way.store(true, Ordering::Release);
            self.wanted.notify_one();
        }
        may
    }

    fn begins(&self) {
        let _last = self.last.lock();
        self.under_way.store(true, Ordering::Release);
    }

    fn is_over(&self) {
        let mut last = self.last.lock();
        *last = Some(Instant::now());
        self.under_way.store(false, Ordering::Release);
    }
}

impl Follower {
    /// Follows the keys until `over` is cancelled. Each value of `hangups` triggers a fetch at once.
    pub(super) async fn run(mut self, mut hangups: watch::Receiver<()>, over: CancellationToken) {
        // A URL that was unreachable at the start is fetched again soon.
        let mut failing = self.text.is_empty();
        loop {
            let pause = if failing { self.refresh.min(AGAIN_MIN) } else { self.refresh };
            tokio::select! {
                () = over.cancelled() => return,
                () = sleep(jittered(pause)) => {}
                () = self.asked.wanted.notified() => {}
                Ok(()) = hangups.changed() => {}
            }
            self.asked.begins();
            let (place, read) = read_off_thread(self.place).await;
            self.place = place;
            // Mark the fetch as over before publishing: a waiter that misses its key in the new set must not wait for
            // this fetch again.
            self.asked.is_over();
            failing = read.is_err();
            self.take(read);
        }
    }

    fn take(&mut self, read: Result<Vec<u8>, String>) {
        let from = self.place.shown();
        let parsed = read.and_then(|text| Ok((KeySet::parse(&text)?, text)));
        match parsed {
            Ok((set, text)) => {
                self.had = Instant::now();
                if text != self.text {
                    match set.len() {
                        0 => warn!(
                            from,
                            problem = NO_KEY,
                            "the issuer has no keys: tokens are refused"
                        ),
                        keys => info!(from, keys, "the issuer's keys are other ones now"),
                    }
                    self.text = text;
                    return self.replace(set);
                }
            }
            Err(problem) if self.had.elapsed() < self.max_age => {
                warn!(from, problem, "the issuer's keys can't be had: those known stay");
            }
            Err(problem) => {
                let max_age = self.max_age.as_secs();
                warn!(
                    from,
                    problem,
                    max_age,
                    "the issuer's keys can't be had for longer than auth.jwks_max_age: tokens are refused"
                );
                if !self.publish.borrow().set.is_empty() {
                    // The same text counts as new keys when it comes again.
                    self.text.clear();
                    return self.replace(KeySet::default());
                }
            }
        }
        // Wake the waiters, although nothing new came.
        self.publish.send_modify(|_| ());
    }

    fn replace(&self, set: KeySet) {
        let generation = self.publish.borrow().generation + 1;
        self.publish.send_replace(Arc::new(Published { set, generation }));
    }
}

async fn read_off_thread(place: JwksOrigin) -> (JwksOrigin, Result<Vec<u8>, String>) {
    let place = Arc::new(place);
    let read = {
        let place = Arc::clone(&place);
        tokio::task::spawn_blocking(move || place.read())
    };
    let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
    (Arc::into_inner(place).expect("the thread that read has ended"), read)
}

/// Returns the pause, up to a tenth longer or shorter, so that replicas don't fetch at the same time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.9 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests;
