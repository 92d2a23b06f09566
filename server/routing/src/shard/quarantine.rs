//! Quarantined tools of a snapshot: their names, so that a call can be refused with the reason, and their requirements,
//! so that only callers who could have seen such a tool learn of it. None of their texts.

use std::collections::HashMap;

use toolgate_core::identity::{ToolId, ToolKey};

/// Tool that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Identity of the tool.
    pub id: ToolId,
    /// Key of the tool: its identity in 128 bits.
    pub key: ToolKey,
    /// Name that the model would see.
    pub model_name: Box<str>,
    /// Index of the snapshot's requirement group that it would belong to.
    pub group: u32,
}

/// Tools of a catalog that wait for approval, indexed by name.
#[derive(Debug, Default)]
pub struct Quarantine {
    tools: Vec<Quarantined>,
    by_model_name: HashMap<Box<str>, usize>,
    by_mcp_name: HashMap<Box<str>, Vec<usize>>,
}

impl Quarantine {
    /// Adds a quarantined tool.
    pub fn add(&mut self, id: ToolId, model_name: Box<str>, group: u32) {
        let place = self.tools.len();
        self.by_model_name.insert(model_name.clone(), place);
        self.by_mcp_name.entry(id.name.as_str().into()).or_default().push(place);
        self.tools.push(Quarantined { key: id.key(), id, model_name, group });
    }

    /// Returns all quarantined tools.
    pub fn tools(&self) -> impl Iterator<Item = &Quarantined> {
        self.tools.iter()
    }

    /// Returns the tools that a name may mean: model-facing, `server/name`, or MCP's own.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Quarantined> {
        let (server, bare) = name.split_once('/').unwrap_or(("", name));
        let whole = self.by_model_name.get(name).into_iter();
        let of_that_name = self.by_mcp_name.get(bare).into_iter().flatten();
        let of_server =
            move |tool: &&Quarantined| server.is_empty() || tool.id.server.as_str() == server;
        let tool = |place: &usize| &self.tools[*place];
        whole.map(tool).chain(of_that_name.map(tool).filter(of_server))
    }

    /// Returns the approximate bytes in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names =
            |tool: &Quarantined| tool.model_name.len() * 3 + tool.id.name.as_str().len() * 2;
        self.tools.iter().map(|tool| size_of::<Quarantined>() + names(tool) + 64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::identity::{ServerName, ToolName};

    #[test]
    fn tools_are_found_by_every_name() {
        let id = |server: &str, name: &str| ToolId {
            server: ServerName::parse(server).expect("a name"),
            name: ToolName::parse(name).expect("a name"),
        };
        let mut quarantine = Quarantine::default();
        quarantine.add(id("a", "log"), "mcp__a__log".into(), 0);
        quarantine.add(id("b", "log"), "mcp__b__log".into(), 1);
        let groups =
            |name: &str| -> Vec<u32> { quarantine.named(name).map(|tool| tool.group).collect() };
        assert_eq!(groups("mcp__b__log"), [1]);
        assert_eq!(groups("log"), [0, 1]);
        assert_eq!(groups("a/log"), [0]);
        assert_eq!(groups("c/log"), [] as [u32; 0]);
        assert_eq!(groups("lo"), [] as [u32; 0]);
    }
}
