//! Tools that are near to whatever people ask. A summary's overlap with the mean of everybody's requests is its mean
//! overlap with them (hubs: M. Radovanović, A. Nanopoulos and M. Ivanović, "Hubs in Space", Journal of Machine Learning
//! Research 11, 2010).

use std::sync::Arc;

/// Tells which summaries are near to everything.
#[derive(Debug, Clone)]
pub struct Hubs {
    everyday: Arc<[f32]>,
    limit: f32,
}

impl Hubs {
    /// Takes a summary for near to everything if its mean overlap with the requests of which `everyday` is the mean is
    /// at least `limit`, -1 to 1.
    #[must_use]
    pub fn new(everyday: Arc<[f32]>, limit: f32) -> Self {
        Self { everyday, limit }
    }

    /// Returns the mean overlap of a summary's embedding with everybody's requests.
    #[must_use]
    pub fn nearness(&self, summary: &[f32]) -> f32 {
        summary.iter().zip(&*self.everyday).map(|(value, mean)| value * mean).sum()
    }

    /// Returns true if a summary is near to everything, by its embedding.
    #[must_use]
    pub fn is_one(&self, summary: &[f32]) -> bool {
        self.nearness(summary) >= self.limit
    }
}
