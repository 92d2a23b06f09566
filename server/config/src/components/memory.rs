//! Memory of what worked.

use std::time::Duration;

use crate::{Settings, Value};
use toolgate_core::identity::TenantId;

/// Memory of what worked.
#[derive(Debug, Clone)]
pub struct MemoryConfig {
    /// The tenants whose calls are remembered.
    pub tenants: Vec<TenantId>,
    /// How long a call takes to count half.
    pub half_life: Duration,
    /// How often what was observed is written, and what others wrote is read.
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
