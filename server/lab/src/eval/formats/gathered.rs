//! MCP servers as they fill with tools. Sets repeat a tool with every query that it is offered for; it is taken as
//! it comes first.

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
    /// Takes a tool unless it is there; its label.
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

    /// What was gathered from a file.
    ///
    /// # Errors
    /// It had no tools.
    pub(super) fn unless_empty(self, path: &Path) -> Result<Vec<CatalogServer>, InputError> {
        if self.servers.is_empty() {
            return Err(InputError::of_file(path, "no tools in it"));
        }
        Ok(self.servers)
    }
}

/// The label of a tool, as queries name it.
pub(super) fn label(server: &str, name: &str) -> String {
    format!("{server}/{name}")
}
