//! What the tools of a catalog ask of the state: their own preconditions and scopes, their MCP servers', and
//! those of the policy's rules. Tools that ask the same make a group, and conditions that many groups share
//! stand here once, so that each is evaluated once a call.

use std::collections::HashMap;
use std::sync::Arc;

use crate::condition::{Condition, Mistake, ToolFacts};
use crate::policy::Policy;
use crate::precondition::Precondition;
use crate::store::{ServerRecord, ToolRecord};

/// What all tools of a catalog ask.
#[derive(Debug, Default)]
pub struct Requirements {
    /// The tools by what they ask, in the order of their first tools.
    pub groups: Vec<Group>,
    /// Every scope that some group needs.
    pub scopes: Vec<Box<str>>,
    /// Every condition that some group needs.
    pub conditions: Vec<Condition>,
    /// Steps that all of them take for states of a usual size, at most.
    pub steps: usize,
}

/// The tools that ask the same.
#[derive(Debug)]
pub struct Group {
    /// What they ask, the registrant's own needs first.
    pub needs: Vec<Need>,
    /// Their slots, ascending.
    pub slots: Vec<u32>,
    /// Their definitions' tokens, added up.
    pub schema_tokens: u64,
    /// Their summary-pool lines' tokens, added up.
    pub summary_tokens: u64,
}

/// One thing that a tool asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Need {
    /// The rule of the policy that says so; `None` for the registrant.
    pub rule: Option<u32>,
    /// What.
    pub demand: Demand,
}

/// What is asked; numbers are places in [`Requirements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Demand {
    /// Nothing helps.
    Denied,
    /// The scope is granted.
    Scope(u32),
    /// The condition holds.
    Condition(u32),
}

/// Collects groups while tools are added slot by slot.
#[derive(Debug)]
pub struct Grouping {
    policy: Arc<Policy>,
    found: Requirements,
    by_needs: HashMap<Vec<Need>, u32>,
    by_scope: HashMap<Box<str>, u32>,
    by_condition: HashMap<Condition, u32>,
    /// Preconditions that were compiled: servers and tools repeat them.
    compiled: HashMap<Precondition, Vec<Condition>>,
}

impl Requirements {
    /// Bytes that this holds, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let needs = |group: &Group| size_of::<Group>() + group.needs.len() * size_of::<Need>();
        let groups: usize = self.groups.iter().map(needs).sum();
        // A condition is a tree of some tens of nodes beside its text.
        groups + self.scopes.len() * 64 + self.conditions.len() * 2_048
    }
}

impl Grouping {
    /// No groups yet.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            found: Requirements::default(),
            by_needs: HashMap::new(),
            by_scope: HashMap::new(),
            by_condition: HashMap::new(),
            compiled: HashMap::new(),
        }
    }

    /// The group of a tool, made when it is the first of it.
    ///
    /// # Errors
    /// A stored expression can't be read: the tool can't be judged then.
    pub fn group_of(
        &mut self,
        server: &ServerRecord,
        tool: &ToolRecord,
        facts: &ToolFacts,
    ) -> Result<u32, Mistake> {
        let mut needs = self.own_needs(server, tool, facts)?;
        let policy = Arc::clone(&self.policy);
        let rules = (0u32..).zip(&policy.rules).filter(|(_, rule)| rule.matches(facts));
        for (n, rule) in rules {
            let rule_needs = |demand| Need { rule: Some(n), demand };
            if rule.denied {
                needs.push(rule_needs(Demand::Denied));
            }
            needs.extend(rule.scopes.iter().map(|scope| rule_needs(self.scope(scope))));
            let conditions = rule.conditions.iter().filter_map(|c| self.condition(c, facts));
            needs.extend(conditions.map(rule_needs));
        }
        Ok(self.group(needs))
    }

    /// Puts the tool of the next slot into its group.
    pub fn add(&mut self, group: u32, slot: u32, schema_tokens: u32, summary_tokens: u32) {
        let group = &mut self.found.groups[group as usize];
        group.slots.push(slot);
        group.schema_tokens += u64::from(schema_tokens);
        group.summary_tokens += u64::from(summary_tokens);
    }

    /// What was collected.
    #[must_use]
    pub fn finish(self) -> Requirements {
        self.found
    }

    fn own_needs(
        &mut self,
        server: &ServerRecord,
        tool: &ToolRecord,
        facts: &ToolFacts,
    ) -> Result<Vec<Need>, Mistake> {
        let mut scopes = [server.required_scopes.as_slice(), &tool.required_scopes].concat();
        scopes.sort();
        scopes.dedup();
        let mut demands: Vec<_> = scopes.iter().map(|scope| self.scope(scope)).collect();
        for precondition in server.precondition.iter().chain(&tool.precondition) {
            if !self.compiled.contains_key(precondition) {
                let conditions = precondition.conditions()?;
                self.compiled.insert(precondition.clone(), conditions);
            }
            let conditions = self.compiled[precondition].clone();
            demands.extend(conditions.iter().filter_map(|c| self.condition(c, facts)));
        }
        Ok(demands.into_iter().map(|demand| Need { rule: None, demand }).collect())
    }

    fn group(&mut self, needs: Vec<Need>) -> u32 {
        if let Some(group) = self.by_needs.get(&needs) {
            return *group;
        }
        let group = place(self.found.groups.len());
        self.by_needs.insert(needs.clone(), group);
        let (slots, schema_tokens, summary_tokens) = (Vec::new(), 0, 0);
        self.found.groups.push(Group { needs, slots, schema_tokens, summary_tokens });
        group
    }

    fn scope(&mut self, scope: &str) -> Demand {
        if let Some(known) = self.by_scope.get(scope) {
            return Demand::Scope(*known);
        }
        let next = place(self.found.scopes.len());
        self.by_scope.insert(scope.into(), next);
        self.found.scopes.push(scope.into());
        Demand::Scope(next)
    }

    /// What is left of a condition for this tool; `None` when it always holds.
    fn condition(&mut self, condition: &Condition, facts: &ToolFacts) -> Option<Demand> {
        let bound = condition.bind(facts);
        if bound.settled() == Some(true) {
            return None;
        }
        if let Some(known) = self.by_condition.get(&bound) {
            return Some(Demand::Condition(*known));
        }
        let next = place(self.found.conditions.len());
        self.found.steps = self.found.steps.saturating_add(bound.steps());
        self.by_condition.insert(bound.clone(), next);
        self.found.conditions.push(bound);
        Some(Demand::Condition(next))
    }
}

fn place(count: usize) -> u32 {
    u32::try_from(count).expect("fewer groups and conditions than 2^32")
}
