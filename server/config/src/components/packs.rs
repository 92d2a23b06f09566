//! What people say who want well-known tools.

use std::path::PathBuf;

use crate::{Settings, Value};

/// What people say who want well-known tools.
#[derive(Debug, Clone, Default)]
pub struct PacksConfig {
    /// Whether tools are found by it.
    pub enabled: bool,
    /// Packs of the operator's own.
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
