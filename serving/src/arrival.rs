//! Arrival times of requests. The caller waits from that moment on, whatever the process does meanwhile.

use std::time::{Duration, Instant};

use tonic::codegen::http::Extensions;

/// Arrival of a request. Requests carry it in their extensions.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Time at which its first bytes could be read.
    pub at: Instant,
    /// Time from `at` until processing began; excludes the time that the body takes.
    pub waited: Duration,
}

impl Arrival {
    /// Returns the arrival of a request that came just now.
    #[must_use]
    pub fn now() -> Self {
        Self { at: Instant::now(), waited: Duration::ZERO }
    }

    /// Returns the arrival stored in these extensions, or the present time if none was recorded.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_else(Self::now)
    }
}
