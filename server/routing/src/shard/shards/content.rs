//! Content from which a shard is built: read from the store or, if that can't be read, from this replica's own copy.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::warn;

use super::Shards;
use crate::catalog::plan::text_hash;
use crate::encoder::flow_of_passages;
use crate::shard::vectors::is_row;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::copies::{Copies, Embeddings, Packed};
use toolgate_store::{ContentHash, Revision, StoreError, StoredCatalog, StoredEmbedding};

/// Maximum texts in one call to the encoder. Several workers of the encoder embed them in parallel. The embeddings of
/// each call are stored before the next call.
const EMBED_CHUNK: usize = 512;

/// Time to wait for the store if there is a copy.
const PATIENCE: Duration = Duration::from_secs(1);

/// Content from which a shard is built.
pub(super) struct Content {
    pub(super) catalog: StoredCatalog,
    pub(super) embeddings: Embeddings,
    /// Instant at which it was read from the store, or `None` for a copy.
    pub(super) read_at: Option<Instant>,
    /// Time that reading it took.
    pub(super) reading: Duration,
}

impl Shards {
    /// Returns the tenant's catalog and embeddings. A copy is used only if the store can't be read, and if the copy has
    /// revision `wanted` or later and is newer than the served shard.
    pub(super) async fn content(
        &self,
        tenant: &TenantId,
        wanted: Revision,
    ) -> Result<Content, Error> {
        let begun = Instant::now();
        let unreadable = match self.stored(tenant).await {
            Err(Error::StoreUnavailable(cause)) => Error::StoreUnavailable(cause),
            Err(other) => return Err(other),
            Ok((catalog, embeddings)) => {
                let reading = begun.elapsed();
                let embeddings = self.complete(tenant, &catalog, embeddings, false).await?;
                return Ok(Content { catalog, embeddings, read_at: Some(begun), reading });
            }
        };
        let served = self.kept.peek(tenant).map_or(0, |built| built.snapshot.revision);
        let Some((catalog, embeddings)) = self.copy(tenant).await else { return Err(unreadable) };
        let reading = begun.elapsed();
        if catalog.revision < wanted || catalog.revision <= served {
            return Err(unreadable);
        }
        let revision = catalog.revision;
        warn!(
            tenant = tenant.as_str(),
            revision, "the store can't be read: serving this replica's copy"
        );
        let embeddings = self.complete(tenant, &catalog, embeddings, true).await?;
        Ok(Content { catalog, embeddings, read_at: None, reading })
    }

    async fn stored(&self, tenant: &TenantId) -> Result<(StoredCatalog, Embeddings), Error> {
        if self.copies.as_ref().is_some_and(|copies| copies.has(tenant)) {
            // A store that does not answer is not waited for if there is a copy.
            let late = |_| StoreError::Unavailable("it does not answer".into());
            timeout(PATIENCE, self.store.revision(tenant)).await.map_err(late)??;
        }
        let catalog = self.store.load_catalog(tenant).await?;
        let catalog = catalog.ok_or_else(|| Error::TenantNotFound(tenant.as_str().to_owned()))?;
        let fingerprint = self.encoder.fingerprint();
        let embeddings = self.store.load_embeddings(tenant, fingerprint).await?;
        let (embeddings, damaged) = self.sifted(embeddings).await?;
        if !damaged.is_empty() {
            warn!(
                tenant = tenant.as_str(),
                damaged = damaged.len(),
                "stored embeddings are damaged: they are deleted and made anew; look at the disk if that happens again"
            );
            // Saving a new embedding would keep a stored one of the right length, so damaged ones are deleted first.
            if let Err(error) = self.store.drop_embeddings(tenant, fingerprint, &damaged).await {
                warn!(tenant = tenant.as_str(), %error, "damaged embeddings can't be deleted now");
            }
        }
        Ok((catalog, embeddings))
    }

    /// Removes the embeddings that the index would refuse, and returns the hashes of their texts.
    async fn sifted(
        &self,
        mut embeddings: Embeddings,
    ) -> Result<(Embeddings, Vec<ContentHash>), Error> {
        let dimensions = self.encoder.dimensions();
        let sift = move || {
            let is_damaged = |_: &ContentHash, vector: &mut Vec<f32>| !is_row(dimensions, vector);
            let damaged: Vec<_> = embeddings.extract_if(is_damaged).map(|(hash, _)| hash).collect();
            (embeddings, damaged)
        };
        // This takes milliseconds for a hundred thousand embeddings.
        tokio::task::spawn_blocking(sift).await.map_err(Error::internal)
    }

    async fn copy(&self, tenant: &TenantId) -> Option<(StoredCatalog, Embeddings)> {
        let copies = Arc::clone(self.copies.as_ref()?);
        let tenant = tenant.clone();
        let fingerprint = self.encoder.fingerprint().to_owned();
        let read = tokio::task::spawn_blocking(move || copies.read(&tenant, &fingerprint));
        let (catalog, embeddings) = read.await.unwrap_or_default()?;
        let (embeddings, _) = self.sifted(embeddings).await.ok()?;
        Some((catalog, embeddings))
    }

    /// Adds the embeddings that this encoder has not made yet, and stores them. Embeddings made for a copy are not
    /// stored.
    async fn complete(
        &self,
        tenant: &TenantId,
        catalog: &StoredCatalog,
        mut embeddings: Embeddings,
        is_borrowed: bool,
    ) -> Result<Embeddings, Error> {
        let mut missing: HashMap<ContentHash, &str> = HashMap::new();
        for tool in &catalog.tools {
            let hash = text_hash(&tool.record.summary);
            if !embeddings.contains_key(&hash) {
                missing.insert(hash, &tool.record.summary);
            }
        }
        let missing: Vec<_> = missing.into_iter().collect();
        for chunk in missing.chunks(EMBED_CHUNK) {
            let texts = chunk.iter().map(|(_, text)| (*text).to_owned()).collect();
            let vectors = match self.encoder.embed(texts, flow_of_passages(tenant), None).await {
                Ok(vectors) => vectors,
                Err(error) => {
                    warn!(%error, missing = missing.len(), "no embeddings: ranking by words");
                    break;
                }
            };
            let made = chunk.iter().zip(vectors).map(|((text_hash, _), embedded)| {
                StoredEmbedding { text_hash: *text_hash, vector: embedded.vector }
            });
            let made: Vec<_> = made.collect();
            if !is_borrowed {
                let fingerprint = self.encoder.fingerprint();
                self.store.save_embeddings(tenant, fingerprint, &made).await?;
            }
            embeddings.extend(made.into_iter().map(|e| (e.text_hash, e.vector)));
        }
        Ok(embeddings)
    }

    /// Returns a function that makes a copy of content read from the store, if copies are kept.
    pub(super) fn packing(
        &self,
        tenant: &TenantId,
        is_borrowed: bool,
    ) -> impl FnOnce(&StoredCatalog, &Embeddings) -> Option<Packed> + Send + 'static {
        let wanted = self.copies.is_some() && !is_borrowed;
        let tenant = tenant.clone();
        let fingerprint = self.encoder.fingerprint().to_owned();
        move |catalog, embeddings| {
            wanted.then(|| Copies::pack(&tenant, &fingerprint, catalog, embeddings)).flatten()
        }
    }

    /// Writes a copy, in the background unless too many are being written already.
    pub(super) async fn keep(&self, packed: Option<Packed>) {
        let (Some(copies), Some(packed)) = (&self.copies, packed) else { return };
        let copies = Arc::clone(copies);
        let permit = Arc::clone(&self.copying).try_acquire_owned();
        let is_crowded = permit.is_err();
        let keep = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            if let Err(error) = copies.keep(&packed) {
                warn!(%error, "no copy of a catalog could be kept for when the store is down");
            }
        });
        if is_crowded {
            drop(keep.await);
        }
    }
}
