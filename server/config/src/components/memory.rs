//! Memory of past tool calls.

use std::time::Duration;

use crate::{Settings, Value};
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
        let tenants = match &settings.get("memory.tenants").value {
            Value::Tenants(tenants) => tenants.clone(),
            _ => unreachable!("memory.tenants is a list of tenants in the table"),
        };
        let days = settings.count("memory.half_life_days") as u64;
        Self {
            tenants,
            half_life: Duration::from_secs(days * SECONDS_OF_A_DAY),
            refresh_interval: settings.duration("memory.refresh_interval"),
        }
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self::from(&Settings::defaults())
    }
}
