//! The operator's word on deferral as it is now: it may change while the server runs.

use std::sync::{Arc, PoisonError, RwLock};

use super::Policy;

/// The present policy.
#[derive(Debug, Default)]
pub struct Live(RwLock<Arc<Policy>>);

impl Live {
    /// A policy that may be replaced.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self(RwLock::new(Arc::new(policy)))
    }

    /// The policy as it is now.
    #[must_use]
    pub fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces it; calls under way keep the one they began with.
    pub fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}
