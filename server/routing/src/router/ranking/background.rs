//! Nearness of a catalog to requests that need no tool, from which the level of "no tool fits" is derived. The more
//! tools a catalog has, the nearer its nearest tool is to any request. A level that suits a hundred tools lets
//! everything pass among thousands.

mod texts;

use std::sync::Arc;
use std::time::Duration;

use fixedbitset::FixedBitSet;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::encoder::Intents;
use crate::shard::snapshot::Snapshot;
use texts::TEXTS;
use toolgate_store::ContentHash;

/// Maximum time that calls wait for the embeddings, measured from the start of embedding. A working encoder takes a
/// tenth of it.
const WAITED_FOR: Duration = Duration::from_secs(1);

/// Time after which embedding is tried again. It is longer than an attempt takes, so that only one runs at a time.
const TRIED_AGAIN: Duration = Duration::from_secs(10);

/// Embeddings of the background requests by one encoder, made when they are first needed.
#[derive(Debug)]
pub struct Background(watch::Sender<State>);

type Vectors = Arc<Vec<Vec<f32>>>;

#[derive(Debug)]
enum State {
    Wanted,
    UnderWay(Instant),
    Here(Vectors),
    Failed(Instant),
}

impl Default for Background {
    fn default() -> Self {
        Self(watch::Sender::new(State::Wanted))
    }
}

impl Background {
    /// Creates the background of embeddings that are known already, if they are.
    pub(in crate::router) fn of(known: Option<Vectors>) -> Self {
        Self(watch::Sender::new(known.map_or(State::Wanted, State::Here)))
    }

    /// Returns the embeddings, or `None` while the encoder is unavailable; the configured level applies then. Embedding
    /// runs beside the calls. A call waits for one second at most, and not past `until`.
    pub(in crate::router) async fn get(
        &self,
        intents: &Arc<Intents>,
        until: Instant,
    ) -> Option<Vectors> {
        self.begin(intents);
        let mut state = self.0.subscribe();
        let begun = match &*state.borrow() {
            State::UnderWay(begun) => *begun,
            ended => return ended.vectors(),
        };
        let has_ended = |state: &State| !matches!(state, State::UnderWay(_));
        let until = until.min(begun + WAITED_FOR);
        let ended = timeout_at(until, state.wait_for(has_ended)).await;
        ended.ok()?.ok()?.vectors()
    }

    /// Starts embedding, unless the embeddings exist or were tried recently.
    pub(in crate::router) fn begin(&self, intents: &Arc<Intents>) {
        // Reads first, because every call passes here.
        if !self.0.borrow().is_due() {
            return;
        }
        let is_ours = self.0.send_if_modified(|state| {
            let is_due = state.is_due();
            if is_due {
                *state = State::UnderWay(Instant::now());
            }
            is_due
        });
        if is_ours {
            let state = self.0.clone();
            let intents = Arc::clone(intents);
            tokio::spawn(async move { state.send_replace(State::made(&intents).await) });
        }
    }

    /// Returns the background requests.
    #[must_use]
    pub fn texts() -> &'static [&'static str] {
        &TEXTS
    }

    /// Returns the SHA-256 of the background requests.
    #[must_use]
    pub fn texts_hash() -> ContentHash {
        let mut hash = Sha256::new();
        for text in TEXTS {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}

impl State {
    fn is_due(&self) -> bool {
        match self {
            Self::Wanted => true,
            Self::Here(_) => false,
            Self::UnderWay(at) | Self::Failed(at) => at.elapsed() >= TRIED_AGAIN,
        }
    }

    fn vectors(&self) -> Option<Vectors> {
        if let Self::Here(vectors) = self { Some(Arc::clone(vectors)) } else { None }
    }

    async fn made(intents: &Intents) -> Self {
        let texts = TEXTS.iter().map(|text| (*text).to_owned()).collect();
        match intents.embed_apart(texts).await {
            Ok(embedded) => {
                Self::Here(Arc::new(embedded.into_iter().map(|one| one.vector).collect()))
            }
            Err(error) => {
                warn!(%error, "the level of \"no tool fits\" is not held against the catalogs yet");
                Self::Failed(Instant::now())
            }
        }
    }
}

/// Range in which the level of a catalog may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    low: f32,
    high: f32,
}

/// Minimum share of the background requests that stay below the level; a lower level would have no effect. An encoder
/// that brings all texts nearer to each other, as a tuned one does, moves the background but not the share that is kept
/// out. Chosen with 100 English intents over the shipped catalogs and 560 requests that need no tool.
const LOW: f32 = 0.82;

/// Maximum share of the background requests that stay below the level. A higher level would only cost requests that do
/// need a tool.
const HIGH: f32 = 0.99;

impl Band {
    /// Returns the band of the allowed tools; `None` if there are no embeddings to compare.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        background: &[Vec<f32>],
        allowed: Option<&FixedBitSet>,
    ) -> Option<Self> {
        let mut tops = snapshot.noise(background)?.tops(allowed);
        tops.sort_by(f32::total_cmp);
        let last = tops.len().checked_sub(1)?;
        let at = |share: f32| tops[(last as f32 * share).round() as usize];
        Some(Self { low: at(LOW), high: at(HIGH) })
    }

    /// Returns `level`, moved into the band.
    #[must_use]
    pub fn clamp(self, level: f32) -> f32 {
        level.clamp(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::encoder::EncoderMetrics;
    use crate::encoder::{EmbedFuture, Embedded, Encoder, Flow};
    use toolgate_core::error::Error;

    /// Encoder that fails or hangs once, then works.
    #[derive(Default)]
    struct Moody {
        tries: AtomicUsize,
        hangs: bool,
    }

    impl Encoder for Moody {
        fn fingerprint(&self) -> &str {
            "moody"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn embed(
            &self,
            texts: Vec<String>,
            _: Flow,
            _: Option<std::time::Instant>,
        ) -> EmbedFuture<'_> {
            let is_first = self.tries.fetch_add(1, Ordering::SeqCst) == 0;
            Box::pin(async move {
                if is_first && self.hangs {
                    std::future::pending::<()>().await;
                }
                if is_first {
                    return Err(Error::EncoderUnavailable("told to fail".into()));
                }
                Ok(vec![Embedded { vector: vec![1.0], truncated: false }; texts.len()])
            })
        }
    }

    async fn get(background: &Background, intents: &Arc<Intents>) -> (bool, Duration) {
        let began = Instant::now();
        let got = background.get(intents, began + Duration::from_secs(60)).await;
        (got.is_some(), began.elapsed())
    }

    /// The clock is paused, so that times are what they are waited for.
    async fn after_a_try(hangs: bool, expected: Duration) {
        let moody = Arc::new(Moody { hangs, ..Moody::default() });
        let encoder: Arc<dyn Encoder> = Arc::clone(&moody) as _;
        let intents = Arc::new(Intents::new(encoder, 0, EncoderMetrics::default()));
        let background = Background::default();
        let (got, took) = get(&background, &intents).await;
        assert!(!got);
        assert_eq!(took, expected);
        // Later calls are not held up, nor do they try again at once.
        for _ in 0..100 {
            let (got, took) = get(&background, &intents).await;
            assert!(!got);
            assert_eq!(took, Duration::ZERO);
        }
        assert_eq!(moody.tries.load(Ordering::SeqCst), 1);
        let long_ago = Instant::now() - TRIED_AGAIN;
        background.0.send_replace(if hangs {
            State::UnderWay(long_ago)
        } else {
            State::Failed(long_ago)
        });
        assert!(get(&background, &intents).await.0 && get(&background, &intents).await.0);
        assert_eq!(moody.tries.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn known_embeddings_need_no_encoder() {
        let moody = Arc::new(Moody::default());
        let encoder: Arc<dyn Encoder> = Arc::clone(&moody) as _;
        let intents = Arc::new(Intents::new(encoder, 0, EncoderMetrics::default()));
        let known = Arc::new(vec![vec![0.5]]);
        let background = Background::of(Some(Arc::clone(&known)));
        let got = background.get(&intents, Instant::now()).await;
        assert_eq!(got, Some(known));
        assert_eq!(moody.tries.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_encoder_that_hangs_holds_calls_up_for_a_second_once() {
        after_a_try(true, WAITED_FOR).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_encoder_that_fails_is_left_alone_for_a_while() {
        after_a_try(false, Duration::ZERO).await;
    }

    #[test]
    fn the_requests_are_all_different() {
        assert_eq!(TEXTS.iter().collect::<BTreeSet<_>>().len(), TEXTS.len());
        assert!(TEXTS.iter().all(|text| text.len() < 200));
    }

    #[test]
    fn a_level_is_moved_as_little_as_the_band_asks() {
        let band = Band { low: 0.2, high: 0.4 };
        for (level, wanted) in [(0.1, 0.2), (0.28, 0.28), (0.9, 0.4)] {
            assert_eq!(band.clamp(level), wanted);
        }
    }
}
