//! A tenant's policy, as it is kept beside the catalog.

use serde::{Deserialize, Serialize};

use super::Revision;

/// A tenant's policy as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// The document, byte for byte as it was set.
    pub document: String,
    /// The catalog revision of its last change.
    pub revision: Revision,
    /// When that was committed, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
}

impl StoredPolicy {
    /// Names this version of the policy; every change gets another one.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("p{:x}", self.revision)
    }
}

/// A change of a tenant's policy.
#[derive(Debug, Clone)]
pub struct PolicyChange {
    /// The revision of the policy that the change was prepared from; `None` when there was none.
    pub base: Option<Revision>,
    /// The document.
    pub document: String,
    /// Whether it hides tools from some callers, so that a changed tool may come or go for them.
    pub hides: bool,
}
