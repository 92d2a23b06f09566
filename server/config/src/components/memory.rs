//! Memory of past tool calls.

use std::time::Duration;

use crate::{Settings, keys};
use toolgate_core::identity::TenantId;

/// Memory of past tool calls.
#[derive(Debug, Clone)]
pub struct MemoryConfig {
    /// Tenants whose calls are remembered.
    pub tenants: Vec<TenantId>,
    /// Age at which a remembered call counts half.
    pub half_life: Duration,
    /// Interval at which observations are written to the store and those of other replicas are read.
    pub refresh_interval: Duration,
}

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

impl From<&Settings> for MemoryConfig {
    fn from(settings: &Settings) -> Self {
        let days = settings.read(&keys::MEMORY_HALF_LIFE_DAYS);
        Self {
            tenants: settings.read(&keys::MEMORY_TENANTS),
            half_life: Duration::from_secs(days * SECONDS_OF_A_DAY),
            refresh_interval: settings.read(&keys::MEMORY_REFRESH_INTERVAL),
        }
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self::from(&Settings::defaults())
    }
}
