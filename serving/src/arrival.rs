//! When a request came: from then on its caller waits, whatever it is that the process does meanwhile.

use std::time::{Duration, Instant};

use tonic::codegen::http::Extensions;

/// When a request came. Requests carry it in their extensions.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When its first bytes could be read.
    pub at: Instant,
    /// How long it took from then until anything was done for it; its body is no part of this.
    pub waited: Duration,
}

impl Arrival {
    /// Something that came just now.
    #[must_use]
    pub fn now() -> Self {
        Self { at: Instant::now(), waited: Duration::ZERO }
    }

    /// Returns when the request of these extensions came; now, where nobody saw it come.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_else(Self::now)
    }
}
