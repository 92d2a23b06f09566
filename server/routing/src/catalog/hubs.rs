//! Detection of hubs: tools whose summaries are near to most requests. A summary's overlap with the mean of all
//! requests equals its mean overlap with them (M. Radovanović, A. Nanopoulos and M. Ivanović, "Hubs in Space", Journal
//! of Machine Learning Research 11, 2010).

use std::sync::Arc;

/// Detector of summaries that are near to most requests.
#[derive(Debug, Clone)]
pub struct Hubs {
    everyday: Arc<[f32]>,
    limit: f32,
}

impl Hubs {
    /// Creates a detector. `everyday` is the mean embedding of many ordinary requests. A summary is a hub if its
    /// overlap with that mean is at least `limit`, -1 to 1.
    #[must_use]
    pub fn new(everyday: Arc<[f32]>, limit: f32) -> Self {
        Self { everyday, limit }
    }

    /// Returns the mean overlap of a summary's embedding with ordinary requests, -1 to 1.
    #[must_use]
    pub fn nearness(&self, summary: &[f32]) -> f32 {
        summary.iter().zip(&*self.everyday).map(|(value, mean)| value * mean).sum()
    }

    /// Returns true if the summary with this embedding is a hub.
    #[must_use]
    pub fn is_one(&self, summary: &[f32]) -> bool {
        self.nearness(summary) >= self.limit
    }
}
