//! Tools of a stored catalog under the tenant's policy, with the effects of its rules on each tool.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::error;

use super::quarantine::Quarantine;
use super::requirements::{Grouping, Requirements, Unjudged};
use super::tool::Tool;
use crate::catalog::definition::Definition;
use toolgate_core::condition::ToolFacts;
use toolgate_core::identity::{ServerName, ToolId};
use toolgate_core::policy::Policy;
use toolgate_store::{ServerRecord, StoredServer, StoredTool, ToolRecord};

/// Tools of a catalog by slot, under a policy.
#[derive(Debug)]
pub struct RuledCatalog {
    /// Tools by slot.
    pub tools: Vec<Tool>,
    /// Requirements of the tools on the agent's state.
    pub requirements: Requirements,
    /// Slots of the tools that the policy pins.
    pub pinned: Vec<u32>,
    /// Number of tools that each rule of the policy matches, by rule.
    pub matched: Vec<u32>,
    /// Number of tools left out because the policy exceeds a limit for this catalog.
    pub unjudged: usize,
    /// Tools that wait for approval.
    pub quarantine: Quarantine,
}

/// Effects of the policy's rules on one tool.
#[derive(Debug, Default)]
pub struct Ruled {
    /// Index of its requirement group.
    pub group: u32,
    /// True if the tool is always part of the active set.
    pub always_load: bool,
    /// True if the tool is never deferred.
    pub critical: bool,
    /// True if the tool is in the active set regardless of its overlap.
    pub pinned: bool,
    /// Minimum overlap for the tool.
    pub threshold: Option<f32>,
    /// Indexes of rules that limit how many of their tools are chosen.
    pub caps: Box<[u32]>,
    /// True if its MCP server is untrusted.
    pub untrusted: bool,
}

impl RuledCatalog {
    /// Applies a policy to a catalog. A tool with a damaged definition or precondition is left out and logged: one bad
    /// row must not hide the rest of the catalog.
    #[must_use]
    pub fn new(servers: Vec<StoredServer>, tools: Vec<StoredTool>, policy: &Arc<Policy>) -> Self {
        Self::beside(servers, tools, Vec::new(), policy)
    }

    /// Applies a policy to a catalog with both its visible and its quarantined tools.
    #[must_use]
    pub fn beside(
        servers: Vec<StoredServer>,
        tools: Vec<StoredTool>,
        quarantined: Vec<StoredTool>,
        policy: &Arc<Policy>,
    ) -> Self {
        let servers: HashMap<ServerName, ServerRecord> =
            servers.into_iter().map(|s| (s.record.name.clone(), s.record)).collect();
        let mut grouping = Grouping::new(Arc::clone(policy));
        let mut ruled = Self {
            tools: Vec::with_capacity(tools.len()),
            requirements: Requirements::default(),
            pinned: Vec::new(),
            matched: vec![0; policy.rules.len()],
            unjudged: 0,
            quarantine: Quarantine::default(),
        };
        for stored in tools {
            let Some(server) = servers.get(&stored.record.server) else { continue };
            let name = stored.record.model_name.clone();
            match ruled.add(server, stored, policy, &mut grouping) {
                Ok(()) => {}
                Err(Flaw::Unjudged(Unjudged::TooMuch)) => ruled.unjudged += 1,
                Err(flaw) => {
                    error!(tool = name, problem = %flaw, "the stored tool is damaged");
                }
            }
        }
        if ruled.unjudged > 0 {
            error!(
                tools = ruled.unjudged,
                "the policy expands to more conditions than a catalog may have: tools are left out"
            );
        }
        for stored in quarantined {
            if let Some(server) = servers.get(&stored.record.server) {
                ruled.set_aside(server, stored.record, &mut grouping);
            }
        }
        ruled.requirements = grouping.finish();
        ruled
    }

    /// Keeps the names and requirements of a quarantined tool. A tool whose requirements are unknown is dropped, so for
    /// callers it does not exist.
    fn set_aside(&mut self, server: &ServerRecord, record: ToolRecord, grouping: &mut Grouping) {
        let Ok(definition) = Definition::parse(&record.definition) else { return };
        let facts = facts_of(&record, &definition);
        let group = grouping
            .rules_of(&facts)
            .and_then(|rules| grouping.group_of(server, &record, &facts, &rules));
        if let Ok(group) = group {
            let id = ToolId { server: record.server, name: record.name };
            self.quarantine.add(id, record.model_name.into(), group);
        }
    }

    fn add(
        &mut self,
        server: &ServerRecord,
        stored: StoredTool,
        policy: &Policy,
        grouping: &mut Grouping,
    ) -> Result<(), Flaw> {
        let definition = Definition::parse(&stored.record.definition);
        let definition = definition.map_err(|rejection| Flaw::Definition(rejection.problem))?;
        let facts = facts_of(&stored.record, &definition);
        let rules = grouping.rules_of(&facts)?;
        let group = grouping.group_of(server, &stored.record, &facts, &rules)?;
        rules.iter().for_each(|rule| self.matched[*rule as usize] += 1);
        let untrusted = server.is_untrusted();
        let ruled = Ruled { group, untrusted, ..ruled(policy, &rules, untrusted) };
        let slot = u32::try_from(self.tools.len()).expect("fewer tools than 2^32");
        if ruled.pinned {
            self.pinned.push(slot);
        }
        let tool = Tool::new(stored, definition, server.is_built_in(), ruled);
        grouping.add(group, slot, tool.schema_tokens, tool.summary_tokens);
        self.tools.push(tool);
        Ok(())
    }
}

/// Reason why a stored tool is not served.
#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error("{0}")]
    Definition(String),
    #[error(transparent)]
    Unjudged(#[from] Unjudged),
}

/// Returns the facts of a tool that rules and conditions may use. Missing hints have MCP's defaults. A read-only tool
/// is never destructive: MCP's `destructiveHint` has a meaning only for the others.
fn facts_of(record: &ToolRecord, definition: &Definition) -> ToolFacts {
    let read_only = definition.hint("readOnlyHint").unwrap_or(false);
    ToolFacts {
        server: record.server.as_str().into(),
        name: record.name.as_str().into(),
        model_name: record.model_name.as_str().into(),
        tags: definition.tags().into(),
        read_only,
        destructive: !read_only && definition.hint("destructiveHint").unwrap_or(true),
        idempotent: definition.hint("idempotentHint").unwrap_or(false),
        open_world: definition.hint("openWorldHint").unwrap_or(true),
    }
}

/// Returns the effects of the rules on a tool. A third party chooses its tools' names, tags and annotations, so a rule
/// that matches by these alone must not force an untrusted tool into every active set.
fn ruled(policy: &Policy, rules: &[u32], untrusted: bool) -> Ruled {
    let mut ruled = Ruled::default();
    let mut caps = Vec::new();
    for n in rules {
        let rule = &policy.rules[*n as usize];
        if !untrusted || !rule.goes_by_claims() {
            ruled.always_load |= rule.always_load;
            ruled.critical |= rule.critical;
            ruled.pinned |= rule.pinned;
        }
        ruled.threshold = rule.choosing.threshold.or(ruled.threshold);
        if rule.choosing.top_k.is_some() || rule.choosing.max_per_server.is_some() {
            caps.push(*n);
        }
    }
    ruled.caps = caps.into();
    ruled
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::identity::ToolName;
    use toolgate_core::precondition::Precondition;
    use toolgate_store::ToolStatus;

    fn stored(name: &str, condition: &str) -> StoredTool {
        let record = ToolRecord {
            server: ServerName::parse("s").expect("a name"),
            name: ToolName::parse(name).expect("a name"),
            model_name: format!("mcp__s__{name}"),
            summary: name.to_owned(),
            search_hint: String::new(),
            definition: r#"{"inputSchema": {}, "annotations": {"readOnlyHint": true}}"#.to_owned(),
            hash: [0; 32],
            precondition: Some(Precondition::Cel(condition.to_owned())),
            required_scopes: Vec::new(),
            always_load: false,
            critical: false,
            schema_tokens: 5,
            summary_tokens: 3,
            status: ToolStatus::Active,
        };
        StoredTool { record, summary_revision: 1 }
    }

    fn ruled(tools: Vec<StoredTool>, document: &str) -> RuledCatalog {
        let record = ServerRecord::new(ServerName::parse("s").expect("a name"));
        let server = StoredServer { record, revision: 1, updated_ms: 0, tool_count: 0 };
        let policy = Policy::parse(document).expect("a policy");
        RuledCatalog::new(vec![server], tools, &Arc::new(policy))
    }

    #[test]
    fn a_tool_that_cannot_be_judged_is_left_out() {
        let tools = vec![stored("good", "true"), stored("bad", "gone(1)"), stored("ok", "1 > 2")];
        let ruled = ruled(tools, "{}");
        let names: Vec<_> = ruled.tools.iter().map(|tool| tool.id.name.as_str()).collect();
        assert_eq!(names, ["good", "ok"]);
        let slots: Vec<_> = ruled.requirements.groups.iter().map(|g| g.slots.clone()).collect();
        assert_eq!(slots, [[0], [1]]);
    }

    #[test]
    fn tools_share_what_is_left_of_a_condition() {
        let condition = "tool.annotations.readOnlyHint && tool.server + ':w' in state.scopes";
        let tools = vec![stored("a", condition), stored("b", "'s:w' in state.scopes")];
        let ruled = ruled(tools, "rules: [{name: r, precondition: {is_authenticated: 's:w'}}]");
        assert_eq!(ruled.requirements.conditions.len(), 1);
        assert_eq!(ruled.requirements.groups.len(), 1);
        assert_eq!(ruled.requirements.groups[0].schema_tokens, 10);
    }

    #[test]
    fn the_last_threshold_counts_and_marks_add_up() {
        let document = "rules:
          - {name: a, threshold: 0.5, critical: true, top_k: 3}
          - {name: b, threshold: 0.1, match: {annotations: {readOnlyHint: false}}}
          - {name: c, threshold: 0.2, pinned: true, match: {tools: [a]}}";
        let ruled = ruled(vec![stored("a", "true"), stored("b", "true")], document);
        let thresholds: Vec<_> = ruled.tools.iter().map(|tool| tool.threshold).collect();
        assert_eq!(thresholds, [Some(0.2), Some(0.5)]);
        assert_eq!(ruled.pinned, [0]);
        assert!(ruled.tools.iter().all(|tool| !tool.deferrable && *tool.caps == [0]));
    }
}
