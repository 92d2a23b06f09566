//! Deferral of tools: deferred tools are found when needed, instead of all being sent. When in doubt, more tools are
//! sent and none is hidden. This module knows nothing of catalogs and of the wire.

mod catalog_size;
mod decide;
mod mode;
mod pattern;

use std::collections::HashMap;

use crate::identity::TenantId;

pub use catalog_size::CatalogSize;
pub use decide::{Decision, DeferralRequest, Reason, Source};
pub use mode::Mode;
pub use pattern::{Pattern, host_of};

/// Settings of the operator for deferral.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// Mode for all tenants; `None` when the operator chose none.
    pub mode: Option<Mode>,
    /// Modes of single tenants, which win over `mode`.
    pub tenants: HashMap<TenantId, Mode>,
    /// True if nothing is deferred, whatever tenants and requests say.
    pub kill_switch: bool,
    /// Models that can't search for tools.
    pub denied_models: Vec<Pattern>,
    /// Models that take no tools amid a conversation, beside those that are known not to.
    pub no_native_models: Vec<Pattern>,
    /// Hosts of models behind which tools are deferred even if nobody chose a mode.
    pub trusted_hosts: Vec<Pattern>,
    /// Tokens to subtract from the cost of deferrable tools.
    pub overhead_tokens: u64,
}
