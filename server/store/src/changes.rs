//! Changes within one catalog, for watchers of it, and the list of catalogs that changed, for processes that serve
//! many tenants.

use super::Revision;
use toolgate_core::identity::TenantId;

/// Number of changes to the catalogs of all tenants together, counted from 1 in commit order.
pub type Sequence = u64;

/// Tenant whose catalog changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTenant {
    /// Tenant that owns the catalog.
    pub tenant: TenantId,
    /// Revision of the tenant's catalog.
    pub revision: Revision,
    /// Number of the tenant's last change.
    pub sequence: Sequence,
}

/// Maximum number of removed MCP servers that a catalog keeps. Older changes can't be listed any more.
/// This crate's tests have a smaller one: they remove one more than it, from each store.
pub const REMOVED_SERVERS_KEPT: u32 = if cfg!(test) { 50 } else { 1_000 };

/// Changes in a catalog since a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Current revision of the catalog; 0 if the tenant never had one.
    pub revision: Revision,
    /// MCP servers that were added, changed or removed, by name. A server that was added and removed again is listed.
    pub servers: Vec<String>,
    /// True if the policy changed.
    pub policy: bool,
    /// False if the changes are no longer known or the revision was never reached. The other fields except `revision`
    /// are empty then.
    pub told: bool,
}
