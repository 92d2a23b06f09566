//! Encoder of intents with a cache. Registrations don't use it, because their embeddings are stored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::{Cache, CacheLookup, Key, PendingEmbedding};
use super::{Embedded, Encoder, Flow, flow_of_intents};
use crate::encoder::EncoderMetrics;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Time limit for embedding texts that belong to no tenant.
const APART_WITHIN: Duration = Duration::from_secs(5);

/// Encoder of intents, which caches their embeddings.
pub struct Intents {
    encoder: Arc<dyn Encoder>,
    cache: Option<Cache>,
    metrics: EncoderMetrics,
}

impl Intents {
    /// Creates an encoder of intents that caches about `cache_memory` bytes of embeddings. 0 turns the cache off.
    #[must_use]
    pub fn new(encoder: Arc<dyn Encoder>, cache_memory: u64, metrics: EncoderMetrics) -> Self {
        let cache = (cache_memory > 0).then(|| Cache::new(cache_memory));
        Self { encoder, cache, metrics }
    }

    /// Embeds intents and returns one embedding each, in their order. An intent that another call of the same tenant is
    /// embedding is waited for. If that call fails or is dropped, this call embeds it.
    ///
    /// # Errors
    /// Same errors as [`Encoder::embed`].
    pub async fn embed(
        &self,
        tenant: &TenantId,
        texts: Vec<String>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Embedded>, Error> {
        let flow = flow_of_intents(tenant);
        let Some(cache) = &self.cache else {
            return self.encoder.embed(texts, flow, deadline).await;
        };
        let fingerprint = self.encoder.fingerprint();
        let keys: Vec<_> = texts.iter().map(|text| Key::new(tenant, fingerprint, text)).collect();
        let mut embedded: Vec<Option<Embedded>> = vec![None; texts.len()];
        let mut ours = Vec::new();
        let mut others = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            match cache.look(key) {
                CacheLookup::Here(found) => embedded[i] = Some(found),
                CacheLookup::Missing(place) => ours.push((i, place)),
                CacheLookup::UnderWay => others.push(i),
            }
        }
        self.count(&texts, &ours, &others);
        for (i, made) in self.fill(&texts, ours, flow, deadline).await? {
            embedded[i] = Some(made);
        }
        // This waits only when no place of this call is open: otherwise two calls could wait for each other forever.
        for i in others {
            embedded[i] = Some(self.follow(cache, &keys[i], &texts[i], flow, deadline).await?);
        }
        self.metrics.cache_memory(self.cache_memory());
        Ok(embedded.into_iter().flatten().collect())
    }

    /// Embeds texts that belong to no tenant. Nothing is cached, and no tenant is charged. Fails after 5 seconds.
    ///
    /// # Errors
    /// Same errors as [`Encoder::embed`], and [`Error::DeadlineExceeded`] after 5 seconds.
    pub async fn embed_apart(&self, texts: Vec<String>) -> Result<Vec<Embedded>, Error> {
        let deadline = Instant::now() + APART_WITHIN;
        let embedding = self.encoder.embed(texts, Flow::ALONE, Some(deadline));
        let embedded = tokio::time::timeout_at(deadline.into(), embedding).await;
        embedded.unwrap_or(Err(Error::DeadlineExceeded))
    }

    /// Returns the underlying encoder, for texts that resemble intents but belong to no tenant.
    #[must_use]
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// Returns the approximate bytes of cached embeddings.
    #[must_use]
    pub fn cache_memory(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::memory)
    }

    /// Embeds the intents that are neither cached nor in progress. If this fails or is dropped, the places become free
    /// again.
    async fn fill(
        &self,
        texts: &[String],
        places: Vec<(usize, PendingEmbedding<'_>)>,
        flow: Flow,
        deadline: Option<Instant>,
    ) -> Result<Vec<(usize, Embedded)>, Error> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = places.iter().map(|(i, _)| texts[*i].clone()).collect();
        let embedded = self.encoder.embed(wanted, flow, deadline).await?;
        let filled = places.into_iter().zip(embedded).map(|((i, place), made)| {
            place.fill(made.clone());
            (i, made)
        });
        Ok(filled.collect())
    }

    async fn follow(
        &self,
        cache: &Cache,
        key: &Key,
        text: &str,
        flow: Flow,
        deadline: Option<Instant>,
    ) -> Result<Embedded, Error> {
        let place = match cache.wait(key).await {
            Ok(embedded) => return Ok(embedded),
            Err(place) => place,
        };
        let mut made = self.encoder.embed(vec![text.to_owned()], flow, deadline).await?;
        let made = made.pop().ok_or_else(|| Error::internal("the encoder left a text out"))?;
        place.fill(made.clone());
        Ok(made)
    }

    fn count(&self, texts: &[String], ours: &[(usize, PendingEmbedding<'_>)], others: &[usize]) {
        let misses = ours.len() as u64;
        let shared = others.len() as u64;
        let hits = texts.len() as u64 - misses - shared;
        for (result, intents) in [("hit", hits), ("miss", misses), ("shared", shared)] {
            if intents > 0 {
                self.metrics.cache_lookups(result, intents);
            }
        }
    }
}
