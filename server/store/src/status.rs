//! Whether a stored tool is shown and callable: the one thing that decides both. And whose texts are a third party's.

use serde::{Deserialize, Serialize};

use super::{ServerRecord, StoredCatalog, StoredTool};

/// The wire's number of `TRUST_TIER_UNTRUSTED`.
pub const UNTRUSTED: i32 = 1;

impl ServerRecord {
    /// Whether its texts are a third party's.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.trust_tier == UNTRUSTED
    }
}

/// How a stored tool stands with whoever keeps the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Shown and callable.
    #[default]
    Active,
    /// Neither shown nor callable until somebody approves it.
    Quarantined,
    /// Shown and callable because somebody approved it as it is.
    Approved,
}

impl ToolStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Active, Self::Quarantined, Self::Approved];

    /// Whether the tool is shown and callable.
    #[must_use]
    pub fn is_shown(self) -> bool {
        self != Self::Quarantined
    }

    /// As backends write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Quarantined => "quarantined",
            Self::Approved => "approved",
        }
    }

    /// What [`ToolStatus::as_str`] wrote; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl StoredCatalog {
    /// The tools that are shown, and those that are not.
    #[must_use]
    pub fn apart(tools: Vec<StoredTool>) -> (Vec<StoredTool>, Vec<StoredTool>) {
        tools.into_iter().partition(|tool| tool.record.status.is_shown())
    }

    /// All of its tools: the shown ones first, then the quarantined ones.
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
