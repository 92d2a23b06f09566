//! Handling of texts that MCP servers write.

use std::path::PathBuf;

use crate::{Settings, Value};

/// Handling of texts that MCP servers write.
#[derive(Debug, Clone, Default)]
pub struct SafetyConfig {
    /// True if registrations are scanned and tools quarantined.
    pub scan: bool,
    /// File of the operator's rules, which are applied over the shipped ones.
    pub rules_file: Option<PathBuf>,
    /// True if an MCP server is untrusted when its registration names no trust tier.
    pub untrusted_by_default: bool,
}

impl From<&Settings> for SafetyConfig {
    fn from(settings: &Settings) -> Self {
        let rules_file = match &settings.get("safety.rules_file").value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        };
        Self {
            scan: settings.flag("safety.scan"),
            rules_file,
            untrusted_by_default: settings.flag("safety.untrusted_by_default"),
        }
    }
}
