//! Settings of the usage ledger.

use std::time::Duration;

use crate::{Settings, keys};

/// Settings of the usage ledger.
#[derive(Debug, Clone, Copy)]
pub struct UsageConfig {
    /// Interval at which counted usage is written to the store.
    pub flush_interval: Duration,
    /// Time that the ledger is kept, in hours.
    pub retention_hours: u32,
}

impl From<&Settings> for UsageConfig {
    fn from(settings: &Settings) -> Self {
        let days = settings.read(&keys::USAGE_RETENTION_DAYS);
        Self {
            flush_interval: settings.read(&keys::USAGE_FLUSH_INTERVAL),
            retention_hours: days.saturating_mul(24),
        }
    }
}
