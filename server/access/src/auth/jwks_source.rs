//! Where the issuer's keys come from: a file that is looked at every few seconds, or an https URL that is asked in the
//! background. Keys stay what they were while neither gives any.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::key_set::{KeySet, SET_BYTES_MAX};

/// How often a file is looked at.
const FILE_INTERVAL: Duration = Duration::from_secs(5);

/// The least between two requests because of unknown keys, and after a failure.
const AGAIN_MIN: Duration = Duration::from_secs(30);

/// The least between two looks at a file because of unknown keys.
const FILE_AGAIN_MIN: Duration = Duration::from_secs(1);

/// What is wrong with a set that holds nothing of use.
const NO_KEY: &str = "no key for RS256, ES256 or EdDSA signatures in it";

/// The longest that the issuer may take.
const FETCH_MAX: Duration = Duration::from_secs(10);

/// The issuer's keys as they are now.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) set: KeySet,
    /// Another number, other keys.
    pub(super) generation: u64,
}

/// A cheap hold on the keys; the loop that keeps them is [`Follower::run`].
#[derive(Clone)]
pub(super) struct Source {
    keys: watch::Receiver<Arc<Published>>,
    asked: Arc<Asked>,
}

/// Who wants newer keys tells the loop here.
struct Asked {
    wanted: Notify,
    /// Whether the loop is on its way for keys.
    under_way: AtomicBool,
    last: Mutex<Option<Instant>>,
    again_min: Duration,
}

/// Keeps the keys up to date.
pub(super) struct Follower {
    place: Place,
    publish: watch::Sender<Arc<Published>>,
    asked: Arc<Asked>,
    refresh: Duration,
    /// The text that the present keys are of.
    text: Vec<u8>,
    /// How long keys count after they were last had.
    max_age: Duration,
    had: Instant,
}

/// Where the keys are.
pub(super) enum Place {
    /// A file.
    File(PathBuf),
    /// An https URL.
    Url {
        /// The URL.
        url: String,
        /// What asks it.
        agent: Agent,
    },
}

impl Place {
    /// An https URL, whose certificate is of these authorities (PEM), or of the public ones.
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

    /// The text of the set. Blocks.
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

/// A file's content, unless it is longer than it may be.
pub(super) fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > most { Err(format!("more than {most} bytes")) } else { Ok(bytes) }
}

impl Source {
    /// The keys of that place. A file must be there and good; a URL may be out of reach for now. Blocks for a moment.
    pub(super) fn begin(
        place: Place,
        refresh: Duration,
        max_age: Duration,
    ) -> Result<(Self, Follower), String> {
        let is_file = matches!(place, Place::File(_));
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
        let asked = Arc::new(Asked {
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

    /// The keys now.
    pub(super) fn keys(&self) -> Arc<Published> {
        Arc::clone(&self.keys.borrow())
    }

    /// The keys after the loop asked for them once more; `None` when it must not ask again so soon, or takes longer
    /// than this.
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

impl Asked {
    /// Whether keys come soon: they are being asked for, or that begins now.
    fn may_wait(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
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
        let _last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.under_way.store(true, Ordering::Release);
    }

    fn is_over(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
        self.under_way.store(false, Ordering::Release);
    }
}

impl Follower {
    /// Follows the keys until `over`; `hangups` has it look at once.
    pub(super) async fn run(mut self, mut hangups: watch::Receiver<()>, over: CancellationToken) {
        // A URL that could not be reached at the start is asked again soon.
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
            // Before anybody is told: who finds no answer in the new keys must not wait for this one again.
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
                    // The same text is news when it comes again.
                    self.text.clear();
                    return self.replace(KeySet::default());
                }
            }
        }
        // Whoever waits hears that nothing new came.
        self.publish.send_modify(|_| ());
    }

    fn replace(&self, set: KeySet) {
        let generation = self.publish.borrow().generation + 1;
        self.publish.send_replace(Arc::new(Published { set, generation }));
    }
}

async fn read_off_thread(place: Place) -> (Place, Result<Vec<u8>, String>) {
    let place = Arc::new(place);
    let read = {
        let place = Arc::clone(&place);
        tokio::task::spawn_blocking(move || place.read())
    };
    let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
    (Arc::into_inner(place).expect("the thread that read has ended"), read)
}

/// The pause, a tenth longer or shorter, so that replicas don't ask together.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 2];
    // Without randomness all pauses are alike, which is no harm here.
    let _ = getrandom::fill(&mut random);
    let share = f64::from(u16::from_be_bytes(random)) / f64::from(u16::MAX);
    pause.mul_f64(0.9 + share / 5.0)
}

#[cfg(test)]
mod tests;
