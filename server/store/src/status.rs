//! Status of a stored tool, the one thing that decides if it is shown and callable; and trust in the texts of a
//! server.

use serde::{Deserialize, Serialize};

use super::{ServerRecord, StoredCatalog, StoredTool};
use toolgate_core::mcp_server::TrustTier;

impl ServerRecord {
    /// Returns true if the server's texts come from an untrusted third party.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.trust_tier == TrustTier::Untrusted
    }
}

/// Review status of a stored tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The tool is shown and callable.
    #[default]
    Active,
    /// The tool is neither shown nor callable until an administrator approves it.
    Quarantined,
    /// The tool is shown and callable because an administrator approved its present definition.
    Approved,
}

impl ToolStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::Active, Self::Quarantined, Self::Approved];

    /// Returns true if the tool is shown and callable.
    #[must_use]
    pub fn is_shown(self) -> bool {
        self != Self::Quarantined
    }

    /// Returns the status as backends store it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Quarantined => "quarantined",
            Self::Approved => "approved",
        }
    }

    /// Parses a text that [`ToolStatus::as_str`] returned; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl StoredCatalog {
    /// Splits tools into the shown ones and the quarantined ones.
    #[must_use]
    pub fn apart(tools: Vec<StoredTool>) -> (Vec<StoredTool>, Vec<StoredTool>) {
        tools.into_iter().partition(|tool| tool.record.status.is_shown())
    }

    /// Returns all tools: the shown ones first, then the quarantined ones.
    pub fn all_tools(&self) -> impl Iterator<Item = &StoredTool> {
        self.tools.iter().chain(&self.quarantined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for status in ToolStatus::ALL {
            assert_eq!(ToolStatus::parse(status.as_str()), Some(status));
            let quoted = serde_json::to_string(&status).expect("a name");
            assert_eq!(quoted, format!("{:?}", status.as_str()), "one name everywhere");
        }
        assert_eq!(ToolStatus::parse("Active"), None);
        let shown: Vec<_> =
            ToolStatus::ALL.into_iter().filter(|status| status.is_shown()).collect();
        assert_eq!(shown, [ToolStatus::Active, ToolStatus::Approved]);
    }
}
