//! Values that may be replaced while the server runs.

use std::sync::{Arc, PoisonError, RwLock};

/// A value as it is now.
#[derive(Debug, Default)]
pub struct Live<T>(RwLock<Arc<T>>);

impl<T> Live<T> {
    /// A value that may be replaced.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// The value as it is now.
    #[must_use]
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces it; calls under way keep the one they began with.
    pub fn replace(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}
