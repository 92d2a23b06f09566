//! Policy of a tenant, stored beside the catalog.

use serde::{Deserialize, Serialize};

use super::Revision;

/// Stored policy of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// Policy document, byte for byte as it was set.
    pub document: String,
    /// Catalog revision of the policy's last change.
    pub revision: Revision,
    /// Commit time of that change, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
}

impl StoredPolicy {
    /// Names this version of the policy; every change gets another one.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("p{:x}", self.revision)
    }
}

/// Change to a tenant's policy.
#[derive(Debug, Clone)]
pub struct PolicyChange {
    /// Policy revision that the change was prepared from; `None` if there was no policy.
    pub base: Option<Revision>,
    /// New policy document.
    pub document: String,
    /// True if the policy hides tools from some callers. Changed tools may then appear or disappear for them.
    pub hides: bool,
}
