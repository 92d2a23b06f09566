//! Usage of tenants, as counters by hour. `toolgate_routing::usage` defines the counted items.

use serde::{Deserialize, Serialize};

use toolgate_core::identity::TenantId;

/// Number of whole hours since 1970 (UTC).
pub type Hour = u32;

/// Maximum value of a counter, at which it stays.
pub const AMOUNT_MAX: u64 = i64::MAX as u64;

/// Amount to add to one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAddition {
    /// Tenant that owns the counter.
    pub tenant: TenantId,
    /// Counter and amount to add.
    pub count: UsageCount,
}

/// Usage counter of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCount {
    /// Hour of the counter, or the first of several hours.
    pub hour: Hour,
    /// Counted item, such as `route_calls`.
    pub item: String,
    /// Counted amount, capped at [`AMOUNT_MAX`].
    pub amount: u64,
}
