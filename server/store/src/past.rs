//! Records of removed tools. With them, a tool that is removed and registered again is not treated as new.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ContentHash, ToolStatus, text};
use toolgate_core::identity::{ServerName, ToolName};

/// Time that the record of a removed tool is kept.
pub const PAST_TOOL_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Maximum number of removed tools that a tenant's catalog remembers. Beyond it, the MCP server with the most records
/// loses its oldest ones.
pub const PAST_TOOLS_KEPT: u32 = 10_000;

/// Tool as it was at its removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTool {
    /// MCP server that owned the tool.
    pub server: ServerName,
    /// MCP name of the tool.
    pub name: ToolName,
    /// SHA-256 of the canonical definition.
    #[serde(with = "text::hex")]
    pub hash: ContentHash,
    /// SHA-256 of the summary.
    #[serde(with = "text::hex")]
    pub summary_hash: ContentHash,
    /// Words that users said when they needed the tool.
    pub search_hint: String,
    /// Status of the tool at its removal.
    pub status: ToolStatus,
    /// Removal time, in milliseconds since 1970 (UTC).
    pub removed_ms: i64,
}
