//! Tests of the embedding cache and the prefixes, with an encoder that waits for permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::*;
use crate::encoder::EncoderMetrics;
use toolgate_core::identity::TenantId;

const SOON: Duration = Duration::from_secs(20);

/// Encoder that answers as many calls as it has permits, and records the texts of all calls that began.
struct Gated {
    allowed: Semaphore,
    begun: Mutex<Vec<String>>,
    failures: AtomicUsize,
}

impl Gated {
    fn new(allowed: usize) -> Arc<Self> {
        let allowed = Semaphore::new(allowed);
        Arc::new(Self { allowed, begun: Mutex::default(), failures: AtomicUsize::new(0) })
    }

    fn begun(&self) -> Vec<String> {
        self.begun.lock().clone()
    }

    /// Waits until a total of `texts` texts have begun.
    async fn until_begun(&self, texts: usize) {
        let reached = async {
            while self.begun().len() < texts {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, reached).await.expect("in time");
    }
}

impl Encoder for Gated {
    fn fingerprint(&self) -> &str {
        "gated"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        Box::pin(async move {
            self.begun.lock().extend(texts.iter().cloned());
            self.allowed.acquire().await.expect("open").forget();
            if self.failures.load(Ordering::SeqCst) > 0 {
                self.failures.fetch_sub(1, Ordering::SeqCst);
                return Err(Error::EncoderUnavailable("told to".into()));
            }
            let embedded =
                |text: &String| Embedded { vector: vec![text.len() as f32, 0.0], truncated: true };
            Ok(texts.iter().map(embedded).collect())
        })
    }
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn intents(encoder: &Arc<Gated>, cache_memory: u64) -> Arc<Intents> {
    let encoder = Arc::clone(encoder) as Arc<dyn Encoder>;
    Arc::new(Intents::new(encoder, cache_memory, EncoderMetrics::default()))
}

/// Embeds in the background and answers with the first value of each vector.
fn ask(
    intents: &Arc<Intents>,
    name: &str,
    texts: &[&str],
) -> tokio::task::JoinHandle<Result<Vec<f32>, Error>> {
    let intents = Arc::clone(intents);
    let tenant = tenant(name);
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    tokio::spawn(async move {
        let embedded = intents.embed(&tenant, texts, None).await?;
        assert!(embedded.iter().all(|one| one.truncated), "remembered as well");
        Ok(embedded.iter().map(|one| one.vector[0]).collect())
    })
}

async fn answer(
    asked: tokio::task::JoinHandle<Result<Vec<f32>, Error>>,
) -> Result<Vec<f32>, Error> {
    tokio::time::timeout(SOON, asked).await.expect("in time").expect("no panic")
}

#[tokio::test]
async fn what_was_embedded_is_not_embedded_again() {
    let encoder = Gated::new(100);
    let intents = intents(&encoder, 1 << 20);
    assert_eq!(answer(ask(&intents, "a", &["x", "yy"])).await.expect("made"), [1.0, 2.0]);
    assert_eq!(answer(ask(&intents, "a", &["yy", "zzz", "x"])).await.expect("ok"), [2.0, 3.0, 1.0]);
    assert_eq!(encoder.begun(), ["x", "yy", "zzz"]);
    assert_eq!(answer(ask(&intents, "a", &["w", "w"])).await.expect("twice"), [1.0, 1.0]);
    assert_eq!(encoder.begun().len(), 4);
}

#[tokio::test]
async fn tenants_share_nothing() {
    let encoder = Gated::new(1);
    let intents = intents(&encoder, 1 << 20);
    answer(ask(&intents, "a", &["x"])).await.expect("made");
    // Neither finished embeddings nor those in progress are shared.
    let other = ask(&intents, "b", &["x"]);
    let third = ask(&intents, "c", &["x"]);
    encoder.until_begun(3).await;
    encoder.allowed.add_permits(2);
    for asked in [other, third] {
        assert_eq!(answer(asked).await.expect("made"), [1.0]);
    }
}

#[tokio::test]
async fn identical_intents_are_embedded_once() {
    let encoder = Gated::new(0);
    let intents = intents(&encoder, 1 << 20);
    let leader = ask(&intents, "a", &["x", "y"]);
    encoder.until_begun(2).await;
    // A call that also has an intent of its own waits for the shared one only after its own is made.
    let followers: Vec<_> = (0..20).map(|_| ask(&intents, "a", &["y", "x"])).collect();
    let mixed = ask(&intents, "a", &["x", "other"]);
    encoder.until_begun(3).await;
    encoder.allowed.add_permits(2);
    assert_eq!(answer(leader).await.expect("made"), [1.0, 1.0]);
    for follower in followers {
        assert_eq!(answer(follower).await.expect("shared"), [1.0, 1.0]);
    }
    assert_eq!(answer(mixed).await.expect("both"), [1.0, 5.0]);
    assert_eq!(encoder.begun(), ["x", "y", "other"]);
}

#[tokio::test]
async fn a_leader_that_leaves_or_fails_neither_fails_nor_holds_its_followers() {
    let encoder = Gated::new(0);
    let intents = intents(&encoder, 1 << 20);
    let leader = ask(&intents, "a", &["x"]);
    encoder.until_begun(1).await;
    let followers: Vec<_> = (0..5).map(|_| ask(&intents, "a", &["x"])).collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    leader.abort();
    encoder.until_begun(2).await;
    // The second leader fails, and only its own caller gets the error.
    encoder.failures.store(1, Ordering::SeqCst);
    encoder.allowed.add_permits(2);
    let mut failed = 0;
    for follower in followers {
        match answer(follower).await {
            Ok(made) => assert_eq!(made, [1.0]),
            Err(_) => failed += 1,
        }
    }
    assert_eq!((failed, encoder.begun().len()), (1, 3));
}

#[tokio::test]
async fn two_calls_that_hold_what_the_other_wants_both_end() {
    let encoder = Gated::new(1_000);
    let intents = intents(&encoder, 1 << 20);
    let texts: Vec<String> = (0..50).map(|i| format!("text {i}")).collect();
    for _ in 0..20 {
        let forth: Vec<_> = texts.iter().map(String::as_str).collect();
        let back: Vec<_> = forth.iter().rev().copied().collect();
        let calls = [ask(&intents, "a", &forth), ask(&intents, "a", &back)];
        for call in calls {
            answer(call).await.expect("made");
        }
    }
    assert_eq!(encoder.begun().len(), 50);
}

#[tokio::test]
async fn the_cache_stays_within_its_bytes_and_can_be_off() {
    let encoder = Gated::new(10_000);
    let bounded = intents(&encoder, 8_000);
    for i in 0..500 {
        answer(ask(&bounded, "a", &[&format!("text {i}")])).await.expect("made");
    }
    assert!(bounded.cache_memory() <= 8_000, "{}", bounded.cache_memory());
    assert!(bounded.cache_memory() > 1_000, "{}", bounded.cache_memory());
    let off = intents(&encoder, 0);
    let before = encoder.begun().len();
    for _ in 0..2 {
        answer(ask(&off, "a", &["x"])).await.expect("made");
    }
    assert_eq!((encoder.begun().len() - before, off.cache_memory()), (2, 0));
}

#[tokio::test]
async fn each_side_has_its_prefix_and_the_fingerprint_covers_it() {
    let gated = Gated::new(10);
    let encoder = Arc::clone(&gated) as Arc<dyn Encoder>;
    let prefixes = Prefixes { query: "query: ".into(), passage: "passage: ".into() };
    let both = Encoders::new(&encoder, &prefixes, 1 << 20, EncoderMetrics::default());
    both.passages.embed(vec!["s".into()], Flow::ALONE, None).await.expect("made");
    both.intents.embed(&tenant("a"), vec!["i".into()], None).await.expect("made");
    assert_eq!(gated.begun(), ["passage: s", "query: i"]);
    let bare = Encoders::bare(&encoder);
    assert_eq!(bare.passages.fingerprint(), "gated", "as stored before there were prefixes");
    let other = Prefixed::new(encoder, "passage : ");
    let fingerprints = [both.passages.fingerprint(), other.fingerprint()];
    assert!(fingerprints[0] != fingerprints[1] && !fingerprints.contains(&"gated"));
}
