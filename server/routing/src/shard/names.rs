//! Index of tools by name: model-facing, MCP's own, `server/name`, and by key.

use std::collections::HashMap;

use super::tool::Tool;
use toolgate_core::identity::ToolKey;

/// Index of slots by name.
#[derive(Debug, Default)]
pub struct NameIndex {
    by_model_name: HashMap<Box<str>, u32>,
    by_mcp_name: HashMap<Box<str>, Vec<u32>>,
    by_key: HashMap<ToolKey, u32>,
    /// All slots, ordered by MCP name.
    sorted: Vec<u32>,
}

impl NameIndex {
    /// Indexes tools. A tool's slot is its position in `tools`.
    #[must_use]
    pub fn build(tools: &[Tool]) -> Self {
        let mut names = Self::default();
        for (slot, tool) in (0u32..).zip(tools) {
            names.by_model_name.insert(tool.model_name.clone(), slot);
            names.by_mcp_name.entry(tool.id.name.as_str().into()).or_default().push(slot);
            names.by_key.insert(tool.key, slot);
            names.sorted.push(slot);
        }
        names.sorted.sort_by_key(|slot| (tools[*slot as usize].id.name.as_str(), *slot));
        names
    }

    /// Returns the slot of a model-facing name.
    #[must_use]
    pub fn model_name(&self, name: &str) -> Option<u32> {
        self.by_model_name.get(name).copied()
    }

    /// Returns the slots of an MCP name, over all servers.
    #[must_use]
    pub fn mcp_name(&self, name: &str) -> &[u32] {
        self.by_mcp_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the slots of the MCP names that begin with `name`, ordered by name.
    pub fn beginning_with(&self, name: &str, tools: &[Tool]) -> impl Iterator<Item = u32> {
        let name_of = |slot: &u32| tools[*slot as usize].id.name.as_str();
        let first = self.sorted.partition_point(|slot| name_of(slot) < name);
        let rest = self.sorted[first..].iter().copied();
        rest.take_while(move |slot| name_of(slot).starts_with(name))
    }

    /// Returns the slot of a tool by the key that handles use.
    #[must_use]
    pub fn key(&self, key: &ToolKey) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// Returns the slot of a name in a request: model-facing, or `server/name`.
    #[must_use]
    pub fn requested(&self, name: &str, tools: &[Tool]) -> Option<u32> {
        self.model_name(name).or_else(|| {
            let (server, bare) = name.split_once('/')?;
            let of_server = |slot: &&u32| tools[**slot as usize].id.server.as_str() == server;
            self.mcp_name(bare).iter().find(of_server).copied()
        })
    }

    /// Returns the approximate bytes of this index.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names = self.by_model_name.keys().chain(self.by_mcp_name.keys());
        let text: usize = names.map(|name| name.len()).sum();
        text + self.by_key.len() * 164
    }
}
