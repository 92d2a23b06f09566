//! Requirements of a catalog's tools on the agent's state: their own preconditions and scopes, those of their MCP
//! servers, and those of the policy's rules. Tools with equal requirements form a group. A condition shared by several
//! groups is stored once, so that each call evaluates it once.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_core::condition::{Condition, Mistake, ToolFacts};
use toolgate_core::policy::Policy;
use toolgate_core::precondition::Precondition;
use toolgate_store::{ServerRecord, ToolRecord};

/// Maximum steps to apply a policy to a catalog: matching its patterns with each tool, and simplifying its conditions
/// for the tool. A step takes 5 to 50 ns.
const STEPS_MAX: usize = 100_000_000;

/// Maximum nodes of all conditions that a policy creates for a catalog: about 20 MiB.
const NODES_MAX: usize = 1 << 18;

/// Maximum needs of all groups that a policy creates for a catalog: about 12 MiB.
const NEEDS_MAX: usize = 1 << 19;

/// Reason why the requirements of a tool are unknown.
#[derive(Debug, thiserror::Error)]
pub enum Unjudged {
    /// Stored expression that can't be parsed.
    #[error("{0}")]
    Mistake(Mistake),
    /// Policy that exceeds a limit for this catalog.
    #[error("the policy expands to more conditions than a catalog may have")]
    TooMuch,
}

/// Requirements of all tools of a catalog.
#[derive(Debug, Default)]
pub struct Requirements {
    /// Groups of tools with equal requirements, in the order of their first tools.
    pub groups: Vec<Group>,
    /// All scopes that some group needs.
    pub scopes: Vec<Box<str>>,
    /// All conditions that some group needs.
    pub conditions: Vec<Condition>,
    /// Maximum steps to evaluate all conditions with a state of usual size.
    pub steps: usize,
}

/// Tools with equal requirements.
#[derive(Debug)]
pub struct Group {
    /// Needs of the tools, the registrant's own first.
    pub needs: Vec<Need>,
    /// Slots of the tools, ascending.
    pub slots: Vec<u32>,
    /// Total tokens of their definitions.
    pub schema_tokens: u64,
    /// Total tokens of their lines of the summary pool.
    pub summary_tokens: u64,
}

/// One requirement of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Need {
    /// Index of the policy's rule that requires it, or `None` if the registrant does.
    pub rule: Option<u32>,
    /// Demand that must be met.
    pub demand: Demand,
}

/// Demand on the state. Numbers are indexes into [`Requirements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Demand {
    /// Demand that no state meets.
    Denied,
    /// Scope that must be granted.
    Scope(u32),
    /// Condition that must hold.
    Condition(u32),
}

/// Place of a condition in a policy, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ConditionPlace {
    rule: u32,
    condition: usize,
}

/// Builder of groups, to which tools are added slot by slot.
#[derive(Debug)]
pub struct Grouping {
    policy: Arc<Policy>,
    found: Requirements,
    by_needs: HashMap<Vec<Need>, u32>,
    by_scope: HashMap<Box<str>, u32>,
    by_condition: HashMap<Condition, u32>,
    /// Preconditions that were compiled. Servers and tools often repeat them.
    compiled: HashMap<Precondition, Vec<Condition>>,
    /// Demands of rules' conditions that are the same for every tool.
    of_rules: HashMap<ConditionPlace, Option<Demand>>,
    /// Steps taken, and nodes and needs created by the policy so far.
    steps: usize,
    nodes: usize,
    needs: usize,
}

impl Requirements {
    /// Returns the approximate bytes in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let needs = |group: &Group| size_of::<Group>() + group.needs.len() * size_of::<Need>();
        let groups: usize = self.groups.iter().map(needs).sum();
        // A condition is a tree of some tens of nodes, in addition to its text.
        groups + self.scopes.len() * 64 + self.conditions.len() * 2_048
    }
}

impl Grouping {
    /// Creates a builder without groups.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            found: Requirements::default(),
            by_needs: HashMap::new(),
            by_scope: HashMap::new(),
            by_condition: HashMap::new(),
            compiled: HashMap::new(),
            of_rules: HashMap::new(),
            steps: 0,
            nodes: 0,
            needs: 0,
        }
    }

    /// Returns the indexes of the rules that match a tool.
    ///
    /// # Errors
    /// [`Unjudged::TooMuch`] if the policy exceeds a limit with the tools so far.
    pub fn rules_of(&mut self, facts: &ToolFacts) -> Result<Vec<u32>, Unjudged> {
        if self.is_full() {
            return Err(Unjudged::TooMuch);
        }
        let policy = &self.policy;
        let steps = &mut self.steps;
        let rules = (0u32..).zip(&policy.rules);
        Ok(rules.filter(|(_, rule)| rule.matches(facts, steps)).map(|(n, _)| n).collect())
    }

    /// Returns the group of a tool, and creates it for the first tool of the group.
    ///
    /// # Errors
    /// The requirements of the tool are unknown. See [`Unjudged`].
    pub fn group_of(
        &mut self,
        server: &ServerRecord,
        tool: &ToolRecord,
        facts: &ToolFacts,
        rules: &[u32],
    ) -> Result<u32, Unjudged> {
        let mut needs = self.own_needs(server, tool, facts)?;
        let policy = Arc::clone(&self.policy);
        for n in rules {
            if self.is_full() {
                return Err(Unjudged::TooMuch);
            }
            let rule = &policy.rules[*n as usize];
            let rule_needs = |demand| Need { rule: Some(*n), demand };
            if rule.denied {
                needs.push(rule_needs(Demand::Denied));
            }
            needs.extend(rule.scopes.iter().map(|scope| rule_needs(self.scope(scope))));
            for (at, condition) in rule.conditions.iter().enumerate() {
                let place = ConditionPlace { rule: *n, condition: at };
                let demand = self.rule_condition(place, condition, facts);
                needs.extend(demand.map(rule_needs));
            }
        }
        Ok(self.group(needs, rules.len()))
    }

    fn is_full(&self) -> bool {
        self.steps > STEPS_MAX || self.nodes > NODES_MAX || self.needs > NEEDS_MAX
    }

    /// Adds the tool of the next slot to its group.
    pub fn add(&mut self, group: u32, slot: u32, schema_tokens: u32, summary_tokens: u32) {
        let group = &mut self.found.groups[group as usize];
        group.slots.push(slot);
        group.schema_tokens += u64::from(schema_tokens);
        group.summary_tokens += u64::from(summary_tokens);
    }

    /// Returns the finished requirements.
    #[must_use]
    pub fn finish(self) -> Requirements {
        self.found
    }

    fn own_needs(
        &mut self,
        server: &ServerRecord,
        tool: &ToolRecord,
        facts: &ToolFacts,
    ) -> Result<Vec<Need>, Unjudged> {
        let mut scopes = [server.required_scopes.as_slice(), &tool.required_scopes].concat();
        scopes.sort();
        scopes.dedup();
        let mut demands: Vec<_> = scopes.iter().map(|scope| self.scope(scope)).collect();
        for precondition in server.precondition.iter().chain(&tool.precondition) {
            if !self.compiled.contains_key(precondition) {
                let conditions = precondition.conditions().map_err(Unjudged::Mistake)?;
                self.compiled.insert(precondition.clone(), conditions);
            }
            let conditions = self.compiled[precondition].clone();
            demands.extend(conditions.iter().filter_map(|c| self.condition(c, facts)));
        }
        Ok(demands.into_iter().map(|demand| Need { rule: None, demand }).collect())
    }

    fn group(&mut self, needs: Vec<Need>, of_rules: usize) -> u32 {
        if let Some(group) = self.by_needs.get(&needs) {
            return *group;
        }
        self.needs += of_rules;
        let group = place(self.found.groups.len());
        self.by_needs.insert(needs.clone(), group);
        let slots = Vec::new();
        let schema_tokens = 0;
        let summary_tokens = 0;
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

    /// Returns the demand of a rule's condition and counts its nodes, because a rule's conditions multiply with the
    /// tools that it matches.
    fn rule_condition(
        &mut self,
        place: ConditionPlace,
        condition: &Condition,
        facts: &ToolFacts,
    ) -> Option<Demand> {
        if let Some(demand) = self.of_rules.get(&place) {
            return *demand;
        }
        let known = self.found.conditions.len();
        let demand = self.condition(condition, facts);
        self.nodes += self.found.conditions[known..].iter().map(Condition::size).sum::<usize>();
        if !condition.reads_tool() {
            self.of_rules.insert(place, demand);
        }
        demand
    }

    /// Returns the remaining condition for this tool, or `None` if it always holds.
    fn condition(&mut self, condition: &Condition, facts: &ToolFacts) -> Option<Demand> {
        let bound = condition.bind(facts, &mut self.steps);
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
