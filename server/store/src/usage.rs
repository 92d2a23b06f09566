//! What tenants used, as counters by hour. What an item means is the ledger's business (`toolgate_routing::usage`).

use serde::{Deserialize, Serialize};

use toolgate_core::identity::TenantId;

/// Whole hours since 1970 (UTC).
pub type Hour = u32;

/// The most that a counter holds; it stays there.
pub const AMOUNT_MAX: u64 = i64::MAX as u64;

/// Something to add to one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAddition {
    /// Whose.
    pub tenant: TenantId,
    /// What is counted, and when.
    pub count: UsageCount,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCount {
    /// The hour, or the first one of several.
    pub hour: Hour,
    /// What is counted, such as `route_calls`.
    pub item: String,
    /// How much; what is above [`AMOUNT_MAX`] is cut.
    pub amount: u64,
}
