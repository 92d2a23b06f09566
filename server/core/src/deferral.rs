//! Whether tools are deferred: found when needed, instead of all sent. What is uncertain leads to sending
//! more, never to hiding. Knows nothing of catalogs and of the wire.

mod decide;
mod mode;
mod pattern;

use std::collections::HashMap;

use crate::identity::TenantId;

pub use decide::{Asked, Decision, Reason, Source};
pub use mode::Mode;
pub use pattern::{Pattern, host_of};

/// What the operator says about deferral.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// The mode; `None` when the operator chose none.
    pub mode: Option<Mode>,
    /// Modes of single tenants.
    pub tenants: HashMap<TenantId, Mode>,
    /// Nothing is deferred, whatever else is said.
    pub kill_switch: bool,
    /// Models that can't search for tools.
    pub denied_models: Vec<Pattern>,
    /// Hosts behind which deferral works without having been chosen.
    pub known_hosts: Vec<Pattern>,
    /// Tokens to subtract from what deferrable tools cost.
    pub overhead_tokens: u64,
}
