//! MCP servers, filled tool by tool. Published sets repeat a tool with every query that offers it; the first copy is
//! used.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use crate::eval::catalog_file::CatalogServer;
use crate::eval::input_error::InputError;

#[derive(Debug, Default)]
pub(super) struct Gathered {
    servers: Vec<CatalogServer>,
    places: HashMap<String, usize>,
    known: HashSet<String>,
}

impl Gathered {
    /// Adds a tool unless it is already there. Returns its label.
    pub(super) fn add(&mut self, server: &str, name: &str, tool: impl FnOnce() -> Value) -> String {
        let label = label(server, name);
        if self.known.insert(label.clone()) {
            let place = *self.places.entry(server.to_owned()).or_insert_with(|| {
                let name = server.to_owned();
                let description = String::new();
                self.servers.push(CatalogServer { name, description, tools: Vec::new() });
                self.servers.len() - 1
            });
            self.servers[place].tools.push(tool().to_string().into());
        }
        label
    }

    /// Returns the servers that were gathered from a file.
    ///
    /// # Errors
    /// The file has no tools.
    pub(super) fn unless_empty(self, path: &Path) -> Result<Vec<CatalogServer>, InputError> {
        if self.servers.is_empty() {
            return Err(InputError::of_file(path, "no tools in it"));
        }
        Ok(self.servers)
    }
}

/// Returns the label of a tool, the name that queries use.
pub(super) fn label(server: &str, name: &str) -> String {
    format!("{server}/{name}")
}
