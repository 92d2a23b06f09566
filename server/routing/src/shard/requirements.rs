//! What the tools of a catalog ask of the state: their own preconditions and scopes, their MCP servers', and
//! those of the policy's rules. Tools that ask the same make a group, and conditions that many groups share
//! stand here once, so that each is evaluated once a call.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_core::condition::{Condition, Mistake, ToolFacts};
use toolgate_core::policy::Policy;
use toolgate_core::precondition::Precondition;
use toolgate_store::{ServerRecord, ToolRecord};

/// Steps that putting a catalog under a policy may take: trying its patterns on each tool, and settling what
/// its conditions say of the tool. A step takes 5 to 50 ns.
const STEPS_MAX: usize = 100_000_000;

/// Nodes of all conditions that a policy makes of a catalog: some 20 MiB.
const NODES_MAX: usize = 1 << 18;

/// Needs of all groups that a policy makes of a catalog: some 12 MiB.
const NEEDS_MAX: usize = 1 << 19;

/// Why it is not known what a tool asks.
#[derive(Debug, thiserror::Error)]
pub enum Unjudged {
    /// A stored expression can't be read.
    #[error("{0}")]
    Mistake(Mistake),
    /// The policy makes more of the catalog than is kept.
    #[error("the policy makes too much of this catalog")]
    TooMuch,
}

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
    /// By rule and condition, what is demanded of every tool alike.
    of_rules: HashMap<(u32, usize), Option<Demand>>,
    /// What the policy took and made so far.
    steps: usize,
    nodes: usize,
    needs: usize,
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
            of_rules: HashMap::new(),
            steps: 0,
            nodes: 0,
            needs: 0,
        }
    }

    /// The rules that match a tool, by number.
    ///
    /// # Errors
    /// The policy makes too much of the tools before.
    pub fn rules_of(&mut self, facts: &ToolFacts) -> Result<Vec<u32>, Unjudged> {
        if self.is_full() {
            return Err(Unjudged::TooMuch);
        }
        let policy = &self.policy;
        let steps = &mut self.steps;
        let rules = (0u32..).zip(&policy.rules);
        Ok(rules.filter(|(_, rule)| rule.matches(facts, steps)).map(|(n, _)| n).collect())
    }

    /// The group of a tool, made when it is the first of it.
    ///
    /// # Errors
    /// What the tool asks is not known.
    pub fn group_of(
        &mut self,
        (server, tool): (&ServerRecord, &ToolRecord),
        (facts, rules): (&ToolFacts, &[u32]),
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
            for (i, condition) in rule.conditions.iter().enumerate() {
                let demand = self.rule_condition((*n, i), condition, facts);
                needs.extend(demand.map(rule_needs));
            }
        }
        Ok(self.group(needs, rules.len()))
    }

    fn is_full(&self) -> bool {
        self.steps > STEPS_MAX || self.nodes > NODES_MAX || self.needs > NEEDS_MAX
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

    /// As [`Grouping::condition`], counted: a rule's conditions multiply with the tools that it matches.
    fn rule_condition(
        &mut self,
        place: (u32, usize),
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

    /// What is left of a condition for this tool; `None` when it always holds.
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
