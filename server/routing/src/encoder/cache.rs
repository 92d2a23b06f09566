//! Embeddings that were made before, within a bound of bytes, and those that are being made. Tenants share
//! nothing: what one asked must not make another's answer quicker.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::{self, GuardResult, PlaceholderGuard};
use sha2::{Digest as _, Sha256};

use super::Embedded;
use toolgate_core::identity::TenantId;

/// What an entry takes beside its vector and its tenant's name, about.
const ENTRY_BYTES: usize = 160;

/// The size of an entry that the cache is laid out for: 384 dimensions.
const ENTRY_EXPECTED: u64 = 1_700;

/// A tenant's text as one encoder reads it. Of the text only a hash is kept: intents are users' words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    tenant: TenantId,
    text: [u8; 32],
}

impl Key {
    pub(super) fn new(tenant: &TenantId, fingerprint: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((fingerprint.len() as u64).to_le_bytes());
        hash.update(fingerprint.as_bytes());
        hash.update(text.as_bytes());
        Self { tenant: tenant.clone(), text: hash.finalize().into() }
    }
}

/// Weighs an embedding by its bytes.
#[derive(Debug, Clone)]
struct ByMemory;

impl Weighter<Key, Arc<Embedded>> for ByMemory {
    fn weight(&self, key: &Key, embedded: &Arc<Embedded>) -> u64 {
        let vector = embedded.vector.len() * size_of::<f32>();
        (ENTRY_BYTES + key.tenant.as_str().len() + vector) as u64
    }
}

type Entries = sync::Cache<Key, Arc<Embedded>, ByMemory>;
type Guard<'a> = PlaceholderGuard<
    'a,
    Key,
    Arc<Embedded>,
    ByMemory,
    quick_cache::DefaultHashBuilder,
    sync::DefaultLifecycle<Key, Arc<Embedded>>,
>;

/// The embeddings.
pub(super) struct Cache(Entries);

/// What the cache has of a key.
pub(super) enum Found<'a> {
    /// Its embedding.
    Here(Embedded),
    /// Nothing: whoever asked is to make it.
    Missing(Place<'a>),
    /// Somebody is making it.
    UnderWay,
}

/// The right, and the duty, to make an embedding. Dropped without, it goes to one of those who wait.
pub(super) struct Place<'a>(Guard<'a>);

impl Place<'_> {
    pub(super) fn fill(self, embedded: Embedded) {
        // Refused when the entry was replaced or is larger than the cache: those who wait get it all the same.
        drop(self.0.insert(Arc::new(embedded)));
    }
}

impl Cache {
    /// A cache of about `bytes` at most.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / ENTRY_EXPECTED).unwrap_or(usize::MAX).max(1);
        Self(Entries::with_weighter(entries, bytes, ByMemory))
    }

    /// What is there, without waiting.
    pub(super) fn look(&self, key: &Key) -> Found<'_> {
        match self.0.get_value_or_guard(key, Some(Duration::ZERO)) {
            GuardResult::Value(embedded) => Found::Here(Embedded::clone(&embedded)),
            GuardResult::Guard(guard) => Found::Missing(Place(guard)),
            GuardResult::Timeout => Found::UnderWay,
        }
    }

    /// Waits for whoever is making it; the place, when nobody is any longer.
    pub(super) async fn wait(&self, key: &Key) -> Result<Embedded, Place<'_>> {
        let waited = self.0.get_value_or_guard_async(key).await;
        waited.map(|embedded| Embedded::clone(&embedded)).map_err(Place)
    }

    /// Bytes that the entries take, about.
    pub(super) fn memory(&self) -> u64 {
        self.0.weight()
    }
}
