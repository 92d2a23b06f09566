//! Values that may be replaced while the server runs.

use std::sync::Arc;

use parking_lot::RwLock;

/// Value that may be replaced while the server runs.
#[derive(Debug, Default)]
pub struct Live<T>(RwLock<Arc<T>>);

impl<T> Live<T> {
    /// Creates a value that may be replaced.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// Returns the current value.
    #[must_use]
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the value. Calls in progress keep the value that they began with.
    pub fn replace(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }
}
