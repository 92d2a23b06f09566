//! What is done about texts that MCP servers write.

use std::path::PathBuf;

use crate::{Settings, Value};

/// What is done about texts that MCP servers write.
#[derive(Debug, Clone, Default)]
pub struct SafetyConfig {
    /// Whether registrations are scanned, and tools quarantined.
    pub scan: bool,
    /// The operator's rules over the shipped ones.
    pub rules_file: Option<PathBuf>,
    /// Whether an MCP server is untrusted when its registration does not say.
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
