//! Cache of embeddings that were made or are being made, bounded in bytes. Tenants share no entries: a tenant's request
//! must not make another tenant's answer faster.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::{self, GuardResult, PlaceholderGuard};
use sha2::{Digest as _, Sha256};

use super::Embedded;
use toolgate_core::identity::TenantId;

/// Approximate bytes of an entry besides its vector and its tenant's name.
const ENTRY_BYTES: usize = 160;

/// Expected bytes of an entry, for which the cache is sized: 384 dimensions.
const ENTRY_EXPECTED: u64 = 1_700;

/// Key of a tenant's text for one encoder. Only a hash of the text is kept, because intents are users' words.
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

/// Weigher of entries by their bytes.
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

/// Cache of embeddings by tenant and text.
pub(super) struct Cache(Entries);

/// Result of a lookup in the cache.
pub(super) enum CacheLookup<'a> {
    /// Embedding that is in the cache.
    Here(Embedded),
    /// No embedding. The caller must make it.
    Missing(PendingEmbedding<'a>),
    /// Embedding that another caller is making.
    UnderWay,
}

/// Right and duty to make an embedding. If it is dropped unfilled, it passes to one of the waiting callers.
pub(super) struct PendingEmbedding<'a>(Guard<'a>);

impl PendingEmbedding<'_> {
    pub(super) fn fill(self, embedded: Embedded) {
        // The insert is refused if the entry was replaced or is larger than the cache. Waiting callers get the
        // embedding anyway.
        drop(self.0.insert(Arc::new(embedded)));
    }
}

impl Cache {
    /// Creates a cache of at most about `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / ENTRY_EXPECTED).unwrap_or(usize::MAX).max(1);
        Self(Entries::with_weighter(entries, bytes, ByMemory))
    }

    /// Looks up a key without waiting.
    pub(super) fn look(&self, key: &Key) -> CacheLookup<'_> {
        match self.0.get_value_or_guard(key, Some(Duration::ZERO)) {
            GuardResult::Value(embedded) => CacheLookup::Here(Embedded::clone(&embedded)),
            GuardResult::Guard(guard) => CacheLookup::Missing(PendingEmbedding(guard)),
            GuardResult::Timeout => CacheLookup::UnderWay,
        }
    }

    /// Waits for the caller that makes the embedding. Returns the place if that caller gave up.
    pub(super) async fn wait(&self, key: &Key) -> Result<Embedded, PendingEmbedding<'_>> {
        let waited = self.0.get_value_or_guard_async(key).await;
        waited.map(|embedded| Embedded::clone(&embedded)).map_err(PendingEmbedding)
    }

    /// Returns the approximate bytes of all entries.
    pub(super) fn memory(&self) -> u64 {
        self.0.weight()
    }
}
