//! Tests of spans of time, and of the clock that keys are stamped with.

use std::collections::HashMap;

use super::*;
use parking_lot::Mutex;
use toolgate_store::StoreFuture;

#[test]
fn spans_are_read() {
    for (text, want) in [("90d", 90 * MS_OF_A_DAY), ("12h", 43_200_000), ("500ms", 500)] {
        assert_eq!(span_ms(text), Ok(want));
    }
    for text in ["", "90", "d", "-1d", "1.5d", "4000d", "99999999999d"] {
        assert!(span_ms(text).is_err(), "{text}");
    }
}

/// A store whose clock differs from this host's.
#[derive(Default)]
struct Fake {
    keys: Mutex<HashMap<String, StoredKey>>,
}

/// Time of the store's clock, in milliseconds. It lies in 1970, far behind this host's clock.
const STORE_NOW_MS: i64 = 1_000_000_000;

fn ready<'a, T: Send + 'a>(answer: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl KeyStore for Fake {
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()> {
        self.keys.lock().insert(key.id.clone(), key.clone());
        ready(())
    }

    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<KeyReading>> {
        let found = self.keys.lock().get(id).cloned();
        ready(found.map(|key| KeyReading { key, now_ms: STORE_NOW_MS }))
    }

    fn read_clock_ms(&self) -> StoreFuture<'_, i64> {
        ready(STORE_NOW_MS)
    }

    fn list_keys<'a>(&'a self, _: &'a str, _: u32) -> StoreFuture<'a, Vec<StoredKey>> {
        ready(Vec::new())
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool> {
        let mut keys = self.keys.lock();
        let found = keys.get_mut(id);
        let is_there = found.is_some();
        if let Some(key) = found {
            key.revoked_ms = Some(key.revoked_ms.map_or(at_ms, |before| before.min(at_ms)));
        }
        ready(is_there)
    }

    fn mark_keys_used<'a>(&'a self, _: &'a [String], _: i64) -> StoreFuture<'a, ()> {
        ready(())
    }
}

#[tokio::test]
async fn keys_are_stamped_by_the_store_s_clock() {
    let audit = Audit::open(None, AuthMetrics::default()).expect("no file");
    let keys = Keys { store: Arc::new(Fake::default()), audit };
    let asked = Create {
        tenant: TenantId::parse("acme").ok(),
        role: vec![Role::Agent],
        label: String::new(),
        principal: None,
        expires: Some(MS_OF_A_DAY),
        json: false,
        config: ConfigArguments { config: None, settings: Vec::new() },
    };
    let Ok(first) = keys.create(&asked).await else { panic!("no key was made") };
    assert_eq!(first.stored.created_ms, STORE_NOW_MS);
    assert_eq!(first.stored.expires_ms, Some(STORE_NOW_MS + MS_OF_A_DAY));
    let Ok(second) = keys.rotate(&first.stored.id, 60_000, None).await else {
        panic!("the key is good by the store's clock")
    };
    assert_eq!(second.stored.expires_ms, Some(STORE_NOW_MS + MS_OF_A_DAY));
    let Ok(old) = keys.find(&first.stored.id).await else { panic!("no key") };
    assert_eq!(old.key.revoked_ms, Some(STORE_NOW_MS + 60_000), "after the overlap");
    let Ok(revoked) = keys.revoke(&second.stored.id).await else { panic!("no key") };
    assert_eq!(revoked.key.revoked_ms, Some(STORE_NOW_MS));
    assert_eq!(report::end(&revoked.key, revoked.now_ms), Some("revoked"));
}
