//! Handling of texts that MCP servers write.

use std::path::PathBuf;

use crate::{Settings, keys};

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
        Self {
            scan: settings.read(&keys::SAFETY_SCAN),
            rules_file: settings.read_optional(&keys::SAFETY_RULES_FILE),
            untrusted_by_default: settings.read(&keys::SAFETY_UNTRUSTED_BY_DEFAULT),
        }
    }
}
