//! From a stored catalog to tools under the tenant's policy: what its rules make of each of them.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::error;

use super::requirements::{Grouping, Requirements};
use super::tool::Tool;
use crate::catalog::definition::Definition;
use crate::condition::ToolFacts;
use crate::error::Error;
use crate::identity::ServerName;
use crate::policy::Policy;
use crate::store::{ServerRecord, StoredServer, StoredTool, ToolRecord};

/// A catalog's tools by slot, under a policy.
#[derive(Debug)]
pub struct RuledCatalog {
    /// The tools by slot.
    pub tools: Vec<Tool>,
    /// What they ask of the state.
    pub requirements: Requirements,
    /// Slots of the tools that the policy pins.
    pub pinned: Vec<u32>,
}

/// What rules make of one tool.
#[derive(Debug, Default)]
pub struct Ruled {
    /// Its requirement group.
    pub group: u32,
    /// Always part of the active set.
    pub always_load: bool,
    /// Never deferred.
    pub critical: bool,
    /// In the active set whatever its overlap.
    pub pinned: bool,
    /// The least overlap.
    pub threshold: Option<f32>,
    /// Rules that limit how many of their tools are chosen.
    pub caps: Box<[u32]>,
}

impl RuledCatalog {
    /// Puts a catalog under a policy. A damaged definition is left out and logged: one bad row must not hide
    /// the rest of the catalog.
    ///
    /// # Errors
    /// [`Error::Internal`] when a stored precondition can't be read.
    pub fn new(
        servers: Vec<StoredServer>,
        tools: Vec<StoredTool>,
        policy: &Arc<Policy>,
    ) -> Result<Self, Error> {
        let servers: HashMap<ServerName, ServerRecord> =
            servers.into_iter().map(|s| (s.record.name.clone(), s.record)).collect();
        let mut grouping = Grouping::new(Arc::clone(policy));
        let mut ruled = Self {
            tools: Vec::with_capacity(tools.len()),
            requirements: Requirements::default(),
            pinned: Vec::new(),
        };
        for stored in tools {
            let Some(server) = servers.get(&stored.record.server) else { continue };
            let name = &stored.record.model_name;
            match Definition::parse(&stored.record.definition) {
                Ok(definition) => ruled.add(server, stored, definition, (policy, &mut grouping))?,
                Err(problem) => {
                    error!(tool = name, problem = problem.problem, "stored definition is damaged");
                }
            }
        }
        ruled.requirements = grouping.finish();
        Ok(ruled)
    }

    fn add(
        &mut self,
        server: &ServerRecord,
        stored: StoredTool,
        definition: Definition,
        (policy, grouping): (&Policy, &mut Grouping),
    ) -> Result<(), Error> {
        let facts = facts_of(&stored.record, &definition);
        let group = grouping.group_of(server, &stored.record, &facts)?;
        let ruled = Ruled { group, ..ruled(policy, &facts) };
        let slot = u32::try_from(self.tools.len()).expect("fewer tools than 2^32");
        if ruled.pinned {
            self.pinned.push(slot);
        }
        let tool = Tool::new(stored, definition, ruled);
        grouping.add(group, slot, tool.schema_tokens, tool.summary_tokens);
        self.tools.push(tool);
        Ok(())
    }
}

/// What rules and conditions may know of a tool; absent hints have MCP's defaults.
fn facts_of(record: &ToolRecord, definition: &Definition) -> ToolFacts {
    ToolFacts {
        server: record.server.as_str().into(),
        name: record.name.as_str().into(),
        model_name: record.model_name.as_str().into(),
        tags: definition.tags().into(),
        read_only: definition.hint("readOnlyHint").unwrap_or(false),
        destructive: definition.hint("destructiveHint").unwrap_or(true),
        idempotent: definition.hint("idempotentHint").unwrap_or(false),
        open_world: definition.hint("openWorldHint").unwrap_or(true),
    }
}

fn ruled(policy: &Policy, facts: &ToolFacts) -> Ruled {
    let mut ruled = Ruled::default();
    let mut caps = Vec::new();
    for (n, rule) in (0u32..).zip(&policy.rules).filter(|(_, rule)| rule.matches(facts)) {
        ruled.always_load |= rule.always_load;
        ruled.critical |= rule.critical;
        ruled.pinned |= rule.pinned;
        ruled.threshold = rule.choosing.threshold.or(ruled.threshold);
        if rule.choosing.top_k.is_some() || rule.choosing.max_per_server.is_some() {
            caps.push(n);
        }
    }
    ruled.caps = caps.into();
    ruled
}
