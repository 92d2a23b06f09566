//! Tests of lookups in the store, of cached keys while the store fails, and of the delay until a change has an
//! effect.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;

use super::*;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::role::Role;
use toolgate_store::{StoreError, StoreFuture};

/// Store in memory that can fail and counts its lookups.
#[derive(Default)]
struct Fake {
    keys: Mutex<HashMap<String, StoredKey>>,
    asked: AtomicUsize,
    /// Milliseconds by which the store's clock is ahead of the calendar time.
    ahead_ms: AtomicI64,
    mood: Mutex<Mood>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mood {
    #[default]
    Well,
    Failing,
    Hanging,
    Damaged,
}

impl Fake {
    fn change(&self, id: &str, change: impl FnOnce(&mut StoredKey)) {
        change(self.keys.lock().get_mut(id).expect("the key"));
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

impl KeyStore for Fake {
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()> {
        self.keys.lock().insert(key.id.clone(), key.clone());
        Box::pin(std::future::ready(Ok(())))
    }

    fn read_clock_ms(&self) -> StoreFuture<'_, i64> {
        unreachable!("a ring stamps nothing")
    }

    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<KeyReading>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self.keys.lock().get(id).cloned();
        let now_ms = NOW_MS + self.ahead_ms.load(Ordering::Relaxed);
        let found = found.map(|key| KeyReading { key, now_ms });
        match *self.mood.lock() {
            Mood::Well => Box::pin(std::future::ready(Ok(found))),
            Mood::Failing => {
                Box::pin(std::future::ready(Err(StoreError::Unavailable("down".into()))))
            }
            Mood::Hanging => Box::pin(std::future::pending()),
            Mood::Damaged => {
                Box::pin(std::future::ready(Err(StoreError::Damaged("a hash of 3 bytes".into()))))
            }
        }
    }

    fn list_keys<'a>(&'a self, _: &'a str, _: u32) -> StoreFuture<'a, Vec<StoredKey>> {
        unreachable!("a ring lists nothing")
    }

    fn revoke_key<'a>(&'a self, _: &'a str, _: i64) -> StoreFuture<'a, bool> {
        unreachable!("a ring revokes nothing")
    }

    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()> {
        for id in ids {
            self.change(id, |key| key.used_ms = Some(at_ms));
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

struct World {
    /// Current time. Its calendar time never changes.
    now: Mutex<Now>,
    store: Arc<Fake>,
    ring: Arc<KeyRing>,
    text: String,
    id: String,
}

const NOW_MS: i64 = 1_000_000_000;

async fn world() -> World {
    let store = Arc::new(Fake::default());
    let key = ApiKey::generate().expect("a key");
    let stored = StoredKey {
        id: key.id().to_owned(),
        secret_hash: key.secret_hash(),
        tenant: TenantId::parse("acme").ok(),
        principal: "p".into(),
        roles: vec!["agent".into()],
        label: String::new(),
        created_ms: 0,
        expires_ms: None,
        revoked_ms: None,
        used_ms: None,
    };
    store.create_key(&stored).await.expect("kept");
    let ring = Arc::new(KeyRing::new(Arc::clone(&store) as _, None).expect("a ring"));
    let now = Mutex::new(Now::at_ms(NOW_MS));
    World { now, store, ring, text: key.reveal(), id: key.id().to_owned() }
}

impl World {
    /// Returns the reason that the key is refused; "" if it is accepted.
    async fn judge(&self, text: &str) -> &'static str {
        self.judge_from("127.0.0.1", text).await
    }

    /// Returns the reason for a caller from this address, as `judge` does.
    async fn judge_from(&self, address: &str, text: &str) -> &'static str {
        let network = Network::of(address.parse().expect("an address"));
        let told = self.ring.caller(text, network, self.now()).await;
        told.err().map_or("", |refusal| refusal.reason())
    }
}

impl World {
    fn now(&self) -> Now {
        *self.now.lock()
    }

    fn pass(&self, time: Duration) {
        self.now.lock().moment += time;
    }
}

/// Lets spawned tasks run.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_key_says_who_calls() {
    let world = world().await;
    let caller = world.ring.caller(&world.text, None, world.now()).await.expect("good");
    assert_eq!(caller.tenant("").expect("its own").as_str(), "acme");
    assert_eq!((caller.principal(), caller.roles()), ("p", Roles::of(&[Role::Agent])));
    assert_eq!(caller.credential(), &CredentialId::ApiKey(world.id.clone()));
    let other = ApiKey::generate().expect("a key");
    assert_eq!(world.judge(&other.reveal()).await, "unknown_key");
    let forged = other.reveal().replace(other.id(), &world.id);
    assert_eq!(world.judge(&forged).await, "wrong_secret");
    assert_eq!(world.judge("tgk_x").await, "malformed");
    for (change, want) in [(NOW_MS + 1, ""), (NOW_MS, "expired")] {
        world.store.change(&world.id, |key| key.expires_ms = Some(change));
        world.pass(Duration::from_secs(10));
        assert_eq!(world.judge(&world.text).await, want);
    }
}

#[tokio::test]
async fn the_store_is_asked_seldom_and_a_revoked_key_stops_within_five_seconds() {
    let world = world().await;
    for _ in 0..1_000 {
        assert_eq!(world.judge(&world.text).await, "");
    }
    assert_eq!(world.store.asked(), 1);
    // With calls all the time.
    world.store.change(&world.id, |key| key.revoked_ms = Some(NOW_MS));
    let revoked = world.now().moment;
    while world.judge(&world.text).await.is_empty() {
        world.pass(Duration::from_millis(100));
        settle().await;
        assert!(world.now().moment - revoked < Duration::from_secs(5));
    }
    assert_eq!(world.judge(&world.text).await, "revoked");
    // After a pause.
    let world = self::world().await;
    assert_eq!(world.judge(&world.text).await, "");
    world.store.change(&world.id, |key| key.revoked_ms = Some(NOW_MS));
    world.pass(Duration::from_secs(5));
    assert_eq!(world.judge(&world.text).await, "revoked");
    assert!(!world.ring.is_still_good(&world.id, world.now()).await);
}

#[tokio::test]
async fn a_key_ends_by_the_store_s_clock_whatever_this_host_s_says() {
    const TEN_MINUTES: i64 = 600_000;
    for ahead in [-TEN_MINUTES, TEN_MINUTES] {
        let world = world().await;
        world.store.ahead_ms.store(ahead, Ordering::Relaxed);
        assert_eq!(world.judge(&world.text).await, "");
        // By the store's clock, like a revocation by `toolgate key revoke`.
        world.store.change(&world.id, |key| key.revoked_ms = Some(NOW_MS + ahead));
        world.pass(Duration::from_secs(5));
        assert_eq!(world.judge(&world.text).await, "revoked", "the store is {ahead} ms ahead");
        // A rotated key ends exactly at the announced time.
        for (left_ms, want) in [(1, ""), (0, "revoked")] {
            let end = Some(NOW_MS + ahead + left_ms);
            world.store.change(&world.id, |key| key.revoked_ms = end);
            world.pass(Duration::from_secs(5));
            assert_eq!(world.judge(&world.text).await, want, "{left_ms} ms left");
        }
    }
}

#[tokio::test]
async fn a_damaged_key_is_told_as_damage() {
    let world = world().await;
    world.store.is(Mood::Damaged);
    for known in [false, true] {
        let refusal =
            world.ring.caller(&world.text, None, world.now()).await.expect_err("a refusal");
        assert_eq!((refusal.reason(), refusal.method()), ("damaged", "api-key"), "{known}");
        let error = Error::from(refusal);
        assert!(matches!(error, Error::StoreDamaged(_)), "{error:?}");
        // The key is looked up first, and again when it is no longer fresh.
        world.store.is(Mood::Well);
        assert_eq!(world.judge(&world.text).await, "");
        world.store.is(Mood::Damaged);
        world.pass(TRUSTED_BLINDLY_FOR);
    }
}

#[tokio::test]
async fn a_store_that_fails_takes_nobody_s_key_away_for_an_hour() {
    for mood in [Mood::Failing, Mood::Hanging] {
        let world = world().await;
        assert_eq!(world.judge(&world.text).await, "");
        world.store.is(mood);
        world.pass(RENEWED_AFTER);
        assert_eq!(world.judge(&world.text).await, "", "it is looked up in the background");
        // Wait until that lookup has failed.
        tokio::time::sleep(if mood == Mood::Hanging { LOOKUP_MAX } else { Duration::ZERO }).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        for second in 0..3_600 {
            world.pass(Duration::from_secs(1));
            assert_eq!(world.judge(&world.text).await, "", "after {second} s");
            settle().await;
        }
        assert!(begun.elapsed() < 30 * LOOKUP_MAX, "no call waits for the store");
        assert!(world.ring.is_still_good(&world.id, world.now()).await);
        // An unknown key is refused.
        let other = ApiKey::generate().expect("a key");
        assert_eq!(world.judge(&other.reveal()).await, "unavailable");
        world.pass(TRUSTED_BLINDLY_FOR);
        settle().await;
        assert_eq!(world.judge(&world.text).await, "unavailable");
        world.store.is(Mood::Well);
        assert_eq!(world.judge(&world.text).await, "");
    }
}

#[tokio::test]
async fn made_up_ids_are_bounded() {
    let world = world().await;
    assert_eq!(world.judge(&world.text).await, "");
    let made_up = ApiKey::generate().expect("a key").reveal();
    world.store.asked();
    for _ in 0..100 {
        assert_eq!(world.judge(&made_up).await, "unknown_key");
    }
    assert_eq!(world.store.asked(), 1, "that there is none is remembered");
    let mut busy = 0;
    for _ in 0..3_000 {
        let made_up = ApiKey::generate().expect("a key").reveal();
        busy += usize::from(world.judge(&made_up).await == "busy");
    }
    assert!(world.store.asked() <= 1_000 && busy >= 2_000, "{busy}");
    // Known keys are not delayed by them, and a new key works soon.
    world.pass(Duration::from_secs(3));
    assert_eq!(world.judge(&world.text).await, "");
    let stored = world.store.find_key(&world.id).await.expect("a read").expect("the key").key;
    let new = ApiKey::parse(&made_up).expect("a key");
    let id = new.id().to_owned();
    let stored = StoredKey { id, secret_hash: new.secret_hash(), ..stored };
    world.store.create_key(&stored).await.expect("kept");
    assert_eq!(world.judge(&made_up).await, "");
}

#[tokio::test]
async fn a_stranger_with_made_up_ids_leaves_others_their_questions() {
    let world = world().await;
    let mut busy = 0;
    for number in 0..10_000 {
        let made_up = ApiKey::generate().expect("a key").reveal();
        // All of these addresses belong to one network.
        let address = format!("2001:db8::{number:x}");
        busy += usize::from(world.judge_from(&address, &made_up).await == "busy");
    }
    assert_eq!(busy, 9_800);
    assert_eq!(world.judge_from("2001:db8::1", &world.text).await, "busy");
    assert_eq!(world.judge_from("2001:db8:0:1::1", &world.text).await, "");
    assert_eq!(world.judge_from("2001:db8::1", &world.text).await, "", "it is known now");
}

#[tokio::test]
async fn use_is_noted_once_an_hour() {
    let world = world().await;
    let used = || world.store.keys.lock()[&world.id].used_ms;
    world.ring.write_use().await;
    assert_eq!(used(), None);
    assert_eq!(world.judge(&world.text).await, "");
    world.ring.write_use().await;
    assert!(used().is_some());
    world.store.change(&world.id, |key| key.used_ms = None);
    assert_eq!(world.judge(&world.text).await, "");
    world.ring.write_use().await;
    assert_eq!(used(), None, "within the hour it is no news");
    let later = Now { ms: NOW_MS + USE_GRAIN_MS, ..world.now() };
    world.ring.caller(&world.text, None, later).await.expect("good");
    world.ring.write_use().await;
    assert!(used().is_some());
}

#[tokio::test]
async fn the_admin_key_needs_no_store_and_follows_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admin.key");
    let store = Arc::new(Fake::default());
    let absent = KeyRing::new(Arc::clone(&store) as _, Some(path.clone()));
    assert!(absent.is_err_and(|error| error.is_absence()));
    std::fs::write(&path, "tgk_no").expect("written");
    let bad = KeyRing::new(Arc::clone(&store) as _, Some(path.clone())).err().expect("no key");
    assert!(bad.to_string().contains("openssl") && !bad.to_string().contains("tgk_no"), "{bad}");

    let one = ApiKey::generate().expect("a key");
    let other = ApiKey::generate().expect("a key");
    std::fs::write(&path, format!("{}\n", one.reveal())).expect("written");
    let ring = KeyRing::new(Arc::clone(&store) as _, Some(path.clone())).expect("a ring");
    let ring = Arc::new(ring);
    store.is(Mood::Failing);
    let judge = async |key: &ApiKey| {
        let told = ring.caller(&key.reveal(), None, Now::at_ms(NOW_MS)).await;
        told.map_or_else(
            |refusal| refusal.reason(),
            |caller| caller.roles().names().next().expect("one"),
        )
    };
    assert_eq!(judge(&one).await, "admin");
    let forged = one.reveal()[..17].to_owned() + &"0".repeat(64);
    assert_eq!(judge(&ApiKey::parse(&forged).expect("a key")).await, "wrong_secret");
    std::fs::write(&path, other.reveal()).expect("written");
    ring.read_admin_key_again();
    assert_eq!((judge(&one).await, judge(&other).await), ("unavailable", "admin"));
    std::fs::write(&path, "half a k").expect("written");
    ring.read_admin_key_again();
    assert_eq!(judge(&other).await, "admin", "a mistake changes nothing");
    std::fs::remove_file(&path).expect("removed");
    ring.read_admin_key_again();
    assert_eq!(judge(&other).await, "unavailable", "without the file there is no key");
}

/// World with a copy that all key rings started in it share.
struct Restarted {
    world: World,
    folder: tempfile::TempDir,
}

impl Restarted {
    async fn new() -> Self {
        Self { world: world().await, folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("api-keys.json")
    }

    /// Creates a key ring as a process does at its start.
    fn start(&self) -> Arc<KeyRing> {
        let ring = KeyRing::new(Arc::clone(&self.world.store) as _, None).expect("a ring");
        Arc::new(ring.with_copy(self.path()))
    }

    fn later(&self, time: Duration) -> Now {
        let ms = NOW_MS + i64::try_from(time.as_millis()).expect("a while");
        Now { moment: self.world.now().moment + time, ..Now::at_ms(ms) }
    }

    /// Returns the refusal of the key in a process that starts at this time; "" if it is accepted.
    async fn judge(&self, now: Now) -> &'static str {
        let told = self.start().caller(&self.world.text, None, now).await;
        told.err().map_or("", |refusal| refusal.reason())
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn who_starts_while_the_store_fails_knows_keys_from_the_copy() {
    let restarted = Restarted::new().await;
    let world = &restarted.world;
    let before = restarted.start();
    before.caller(&world.text, None, world.now()).await.expect("good");
    before.write_copy(world.now()).await;
    let text = std::fs::read_to_string(restarted.path()).expect("a copy");
    assert!(text.contains(&world.id) && !text.contains(&world.text), "{text}");
    world.store.is(Mood::Failing);
    assert_eq!(restarted.judge(restarted.later(HOUR)).await, "", "it counts for an hour");
    let forged = ApiKey::generate().expect("a key").reveal();
    let stranger = restarted.start().caller(&forged, None, world.now()).await;
    assert_eq!(stranger.err().map(|refusal| refusal.reason()), Some("unavailable"));
    let too_late = restarted.later(TRUSTED_BLINDLY_FOR);
    assert_eq!(restarted.judge(too_late).await, "unavailable", "and no longer");
    let set_back = Now::at_ms(NOW_MS - 1);
    assert_eq!(restarted.judge(set_back).await, "unavailable", "clocks set back");
}

#[tokio::test]
async fn what_the_copy_has_of_revoked_and_deleted_keys() {
    let restarted = Restarted::new().await;
    let world = &restarted.world;
    let soon = restarted.later(HOUR);
    world.store.change(&world.id, |key| key.revoked_ms = Some(NOW_MS));
    let ring = restarted.start();
    ring.caller(&world.text, None, world.now()).await.expect_err("revoked");
    ring.write_copy(world.now()).await;
    world.store.is(Mood::Failing);
    assert_eq!(restarted.judge(soon).await, "revoked", "it stays so without the store");
    world.store.is(Mood::Well);
    world.store.keys.lock().clear();
    ring.caller(&world.text, None, soon).await.expect_err("gone");
    settle().await;
    ring.write_copy(soon).await;
    world.store.is(Mood::Failing);
    assert_eq!(restarted.judge(soon).await, "unavailable", "deleted keys are forgotten");
}

#[tokio::test]
async fn a_copy_that_is_none_is_made_anew() {
    for odd in ["", "{", "[{\"id\": 3}]", "[1]"] {
        let restarted = Restarted::new().await;
        let world = &restarted.world;
        let path = restarted.path();
        std::fs::write(&path, odd).expect("written");
        let ring = restarted.start();
        assert!(ring.caller(&world.text, None, world.now()).await.is_ok(), "{odd}");
        ring.write_copy(world.now()).await;
        assert!(std::fs::read_to_string(&path).expect("a copy").contains(&world.id), "{odd}");
    }
}
