//! Packs: words with which people ask for well-known tools.

use std::path::PathBuf;

use crate::{Settings, Value};

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
        let directory = match &settings.get("packs.directory").value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        };
        Self { enabled: settings.flag("packs.enabled"), directory }
    }
}
