//! Tools grouped by what they ask of the state, so that each distinct requirement is evaluated once a
//! call, whatever the number of tools.

use std::collections::HashMap;

use crate::precondition::Requirement;
use crate::store::{ServerRecord, ToolRecord};

/// The tools that share one requirement.
#[derive(Debug)]
pub struct Group {
    /// What they ask.
    pub requirement: Requirement,
    /// Their slots, ascending.
    pub slots: Vec<u32>,
    /// Their definitions' tokens, added up.
    pub schema_tokens: u64,
    /// Their summary-pool lines' tokens, added up.
    pub summary_tokens: u64,
}

/// Collects groups while tools are added slot by slot.
#[derive(Debug, Default)]
pub struct Grouping {
    groups: Vec<Group>,
    by_requirement: HashMap<Requirement, u32>,
}

impl Grouping {
    /// The group of a tool, made when it is the first of it.
    pub fn group_of(&mut self, server: &ServerRecord, tool: &ToolRecord) -> u32 {
        let requirement = requirement_of(server, tool);
        if let Some(group) = self.by_requirement.get(&requirement) {
            return *group;
        }
        let group = u32::try_from(self.groups.len()).expect("no more groups than tools");
        self.by_requirement.insert(requirement.clone(), group);
        self.groups.push(Group {
            requirement,
            slots: Vec::new(),
            schema_tokens: 0,
            summary_tokens: 0,
        });
        group
    }

    /// Puts the tool of the next slot into its group.
    pub fn add(&mut self, group: u32, slot: u32, schema_tokens: u32, summary_tokens: u32) {
        let group = &mut self.groups[group as usize];
        group.slots.push(slot);
        group.schema_tokens += u64::from(schema_tokens);
        group.summary_tokens += u64::from(summary_tokens);
    }

    /// The groups, in the order of their first tools.
    #[must_use]
    pub fn finish(self) -> Vec<Group> {
        self.groups
    }
}

fn requirement_of(server: &ServerRecord, tool: &ToolRecord) -> Requirement {
    let mut scopes = [server.required_scopes.as_slice(), &tool.required_scopes].concat();
    scopes.sort();
    scopes.dedup();
    let preconditions = server.precondition.iter().chain(&tool.precondition).cloned().collect();
    Requirement { scopes, preconditions }
}
