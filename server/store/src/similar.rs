//! Tools that a registration is compared with: those of other MCP servers that share marks with its tools.

use super::{Revision, StoredTool};

/// Tools of other MCP servers that share enough marks, at one revision of the catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimilarTools {
    /// Catalog revision; 0 if the tenant never had a catalog.
    pub revision: Revision,
    /// Shown tools, by summary revision, then server, then name.
    pub tools: Vec<StoredTool>,
}

/// Comparison that a change was decided by. A commit refuses the change if other tools would be compared now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Catalog revision at which the tools were compared.
    pub revision: Revision,
    /// Keys of the marks of the change's tools.
    pub marks: Vec<i64>,
}
