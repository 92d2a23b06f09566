//! Packs: words with which people ask for well-known tools.

use std::path::PathBuf;

use crate::{Settings, keys};

/// Packs, which hold words with which people ask for well-known tools.
#[derive(Debug, Clone, Default)]
pub struct PacksConfig {
    /// True if tools are also found by packs.
    pub enabled: bool,
    /// Directory of the operator's own packs.
    pub directory: Option<PathBuf>,
}

impl From<&Settings> for PacksConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            enabled: settings.read(&keys::PACKS_ENABLED),
            directory: settings.read_optional(&keys::PACKS_DIRECTORY),
        }
    }
}
