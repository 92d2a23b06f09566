//! How near a catalog comes to requests that need no tool: what the level of "no tool fits" is told by. The more
//! tools there are, the nearer the nearest of them is to anything; a level that is right for a hundred tools lets
//! everything pass among thousands.

mod texts;

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tokio::sync::OnceCell;
use tracing::warn;

use crate::encoder::Intents;
use crate::error::Error;
use crate::shard::snapshot::Snapshot;
use texts::TEXTS;

/// The embeddings of the background requests by one encoder, made when first needed.
#[derive(Debug, Default)]
pub struct Background(OnceCell<Arc<Vec<Vec<f32>>>>);

impl Background {
    /// The embeddings, or none while the encoder can't be had: the level is the configured one then.
    pub(super) async fn get(&self, intents: &Intents) -> Option<Arc<Vec<Vec<f32>>>> {
        let texts = || TEXTS.iter().map(|text| (*text).to_owned()).collect();
        let embed = || async {
            let embedded = intents.embed_apart(texts()).await?;
            let vectors = embedded.into_iter().map(|one| one.vector).collect();
            Ok::<_, Error>(Arc::new(vectors))
        };
        match self.0.get_or_try_init(embed).await {
            Ok(vectors) => Some(Arc::clone(vectors)),
            Err(error) => {
                warn!(%error, "the level of \"no tool fits\" is not held against this catalog");
                None
            }
        }
    }

    /// The requests.
    #[must_use]
    pub fn texts() -> &'static [&'static str] {
        &TEXTS
    }
}

/// Where the level of a catalog may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    low: f32,
    high: f32,
}

/// Half of the background stays below the level, and not more than 99 of 100: lower, the level would say nothing;
/// higher, it would only cost requests that do need a tool.
const LOW: f32 = 0.5;
const HIGH: f32 = 0.99;

impl Band {
    /// The band of the allowed tools; `None` when nothing is known of the background.
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

    /// `level`, moved into the band.
    #[must_use]
    pub fn clamp(self, level: f32) -> f32 {
        level.clamp(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
