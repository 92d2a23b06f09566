//! Settings of the usage ledger.

use std::time::Duration;

use crate::Settings;

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
        let days = u32::try_from(settings.count("usage.retention_days")).unwrap_or(u32::MAX);
        Self {
            flush_interval: settings.duration("usage.flush_interval"),
            retention_hours: days.saturating_mul(24),
        }
    }
}
