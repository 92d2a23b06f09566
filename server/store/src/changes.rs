//! What changed in a catalog, for those who watch it; and in which catalogs something changed, for those who
//! serve many.

use super::Revision;
use toolgate_core::identity::TenantId;

/// Counts the changes of all tenants' catalogs together, in the order in which they were committed, from 1.
pub type Sequence = u64;

/// A tenant whose catalog changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTenant {
    /// Which.
    pub tenant: TenantId,
    /// Its catalog's revision.
    pub revision: Revision,
    /// The number of its last change.
    pub sequence: Sequence,
}

/// The most removed MCP servers that a catalog keeps; what changed before them can't be told.
pub const REMOVED_SERVERS_KEPT: u32 = 1_000;

/// What changed in a catalog since some revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The catalog's revision now; 0 when the tenant never had one.
    pub revision: Revision,
    /// The MCP servers that came, changed or went, by name. One that came and went is among them.
    pub servers: Vec<String>,
    /// Whether the policy changed.
    pub policy: bool,
    /// False when what changed can't be told any more, or the revision was never reached; the rest is empty
    /// then.
    pub told: bool,
}
