//! What is remembered of tools that were removed, so that removing a tool does not make its next version a first one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ContentHash, ToolStatus, text};
use toolgate_core::identity::{ServerName, ToolName};

/// How long a removed tool is remembered.
pub const PAST_TOOL_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The most removed tools that a tenant's catalog remembers. Beyond it the MCP server with the most gives up its oldest.
pub const PAST_TOOLS_KEPT: u32 = 10_000;

/// A tool as it was when it was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTool {
    /// The MCP server that owned it.
    pub server: ServerName,
    /// Its MCP name.
    pub name: ToolName,
    /// SHA-256 of the canonical definition.
    #[serde(with = "text::hex")]
    pub hash: ContentHash,
    /// SHA-256 of the summary.
    #[serde(with = "text::hex")]
    pub summary_hash: ContentHash,
    /// Words that users said when they meant it.
    pub search_hint: String,
    /// Whether it was shown.
    pub status: ToolStatus,
    /// When it was removed, in milliseconds since 1970 (UTC).
    pub removed_ms: i64,
}
