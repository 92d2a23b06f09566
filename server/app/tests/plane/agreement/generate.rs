//! Random catalogs, policies, conditions and states. They use few names, so that names often coincide.

use fastrand::Rng;
use serde_json::{Value, json};
use toolgate_core::precondition::Precondition;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::catalog::registration::Registration;

use crate::support::{ToolText, server, tool};

const SERVERS: [&str; 3] = ["git", "github", "db"];
const TOOLS: [&str; 4] = ["read_log", "read_all", "drop_all", "x"];
const GLOBS: [&str; 8] = ["*", "git*", "db", "read_*", "*_all", "?", "x*", "nothing"];
const TAGS: [&str; 3] = ["prod", "beta", "pii"];
const SCOPES: [&str; 4] = ["a", "git:w", "db:w", "github:w"];
const MILESTONES: [&str; 3] = ["m0", "m1", "m2"];
const KEYS: [&str; 3] = ["k0", "k1", "k2"];

/// Random choices of a seed.
pub struct Random(Rng);

/// One catalog and one policy.
pub struct Case {
    pub tools: Vec<ToolCase>,
    pub servers: Vec<(&'static str, Asked)>,
    pub rules: Vec<RuleCase>,
}

/// Requirements of a registration or a rule.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub precondition: Option<Precondition>,
    pub scopes: Vec<&'static str>,
}

pub struct ToolCase {
    pub server: &'static str,
    pub name: &'static str,
    pub tags: Vec<&'static str>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub asked: Asked,
}

pub struct RuleCase {
    pub servers: Vec<&'static str>,
    pub tools: Vec<&'static str>,
    pub tags: Vec<&'static str>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub denied: bool,
    pub asked: Asked,
}

impl ToolCase {
    pub fn model_name(&self) -> String {
        format!("mcp__{}__{}", self.server, self.name)
    }
}

impl Case {
    pub fn generate(random: &mut Random) -> Self {
        let mut tools = Vec::new();
        for server in SERVERS {
            for name in TOOLS {
                if random.chance(6) {
                    tools.push(random.tool(server, name));
                }
            }
        }
        tools.push(random.tool("git", "always_there"));
        let servers = SERVERS.map(|name| (name, random.asked(1)));
        let rules = (0..random.below(5)).map(|_| random.rule()).collect();
        Self { tools, servers: servers.into(), rules }
    }

    pub fn registrations(&self) -> Vec<Registration> {
        let of = |(name, asked): &(&'static str, Asked)| {
            let tools = self.tools.iter().filter(|tool| tool.server == *name).map(text);
            let mut registration = server(name, tools.collect());
            registration.server.precondition.clone_from(&asked.precondition);
            registration.server.required_scopes =
                asked.scopes.iter().map(|s| (*s).to_owned()).collect();
            registration
        };
        self.servers.iter().map(of).collect()
    }

    pub fn document(&self) -> String {
        let rules = self.rules.iter().enumerate();
        let rules: Vec<_> = rules.map(|(n, rule)| rule_json(n, rule)).collect();
        json!({ "rules": rules }).to_string()
    }
}

fn text(of: &ToolCase) -> ToolText {
    let mut text = tool(of.name, "a tool");
    text.definition["_meta"] = json!({"tags": of.tags});
    text.definition["annotations"] = hints(of.read_only, of.destructive);
    text.settings.precondition.clone_from(&of.asked.precondition);
    text.settings.required_scopes = of.asked.scopes.iter().map(|s| (*s).to_owned()).collect();
    text
}

fn hints(read_only: Option<bool>, destructive: Option<bool>) -> Value {
    let mut hints = json!({});
    for (name, hint) in [("readOnlyHint", read_only), ("destructiveHint", destructive)] {
        if let Some(hint) = hint {
            hints[name] = hint.into();
        }
    }
    hints
}

fn rule_json(n: usize, rule: &RuleCase) -> Value {
    let mut json = json!({
        "name": format!("r{n}"),
        "match": {"servers": rule.servers, "tools": rule.tools, "tags": rule.tags,
            "annotations": hints(rule.read_only, rule.destructive)},
        "denied": rule.denied,
        "required_scopes": rule.asked.scopes,
    });
    if let Some(precondition) = &rule.asked.precondition {
        json["precondition"] = serde_json::to_value(precondition).unwrap();
    }
    json
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// Returns a state that satisfies every generated registration.
    pub fn everything() -> AgentState {
        let call = |tool: &str| PriorCall {
            tool: tool.to_owned(),
            status: CallStatus::Succeeded,
            turn: 1,
        };
        AgentState {
            scopes: SCOPES.iter().map(|s| (*s).to_owned()).collect(),
            milestones: MILESTONES.iter().map(|s| (*s).to_owned()).collect(),
            calls: TOOLS.iter().map(|name| call(name)).collect(),
            ..AgentState::default()
        }
    }

    pub fn state(&mut self) -> AgentState {
        let statuses = [CallStatus::Succeeded, CallStatus::Failed, CallStatus::Unknown];
        let mut state = AgentState {
            scopes: self.some(&SCOPES, 6).into_iter().map(str::to_owned).collect(),
            milestones: self.some(&MILESTONES, 5).into_iter().map(str::to_owned).collect(),
            principal: self.one(&["", "ann", "bob"]).to_owned(),
            ..AgentState::default()
        };
        for _ in 0..self.below(5) {
            let name = self.one(&TOOLS);
            let server = self.one(&SERVERS);
            let tool =
                if self.chance(5) { format!("mcp__{server}__{name}") } else { name.to_owned() };
            let turn = u32::try_from(self.below(4)).unwrap();
            state.calls.push(PriorCall { tool, status: self.one(&statuses), turn });
        }
        for key in self.some(&KEYS, 6) {
            let values =
                [json!(1), json!(2.5), json!("a"), json!(true), json!(null), json!(["a", "b"])];
            let value = values[self.below(values.len())].clone();
            state.attributes.insert(key.to_owned(), value);
        }
        state
    }

    fn tool(&mut self, server: &'static str, name: &'static str) -> ToolCase {
        ToolCase {
            server,
            name,
            tags: self.some(&TAGS, 3),
            read_only: self.hint(),
            destructive: self.hint(),
            asked: self.asked(2),
        }
    }

    fn rule(&mut self) -> RuleCase {
        RuleCase {
            servers: self.some(&GLOBS, 2),
            tools: self.some(&GLOBS, 2),
            tags: if self.chance(2) { self.some(&TAGS, 5) } else { Vec::new() },
            read_only: self.hint().filter(|_| true),
            destructive: None,
            denied: self.chance(1),
            asked: Asked {
                precondition: self.chance(7).then(|| self.precondition(3, false)),
                scopes: if self.chance(2) { self.some(&SCOPES, 3) } else { Vec::new() },
            },
        }
    }

    /// Returns requirements of a registration that [`Random::everything`] satisfies.
    fn asked(&mut self, tenths: usize) -> Asked {
        Asked {
            precondition: self.chance(tenths).then(|| self.precondition(2, true)),
            scopes: if self.chance(1) { vec![self.one(&SCOPES)] } else { Vec::new() },
        }
    }

    fn precondition(&mut self, depth: usize, holds: bool) -> Precondition {
        let inner = |random: &mut Self| {
            (0..=random.below(2)).map(|_| random.precondition(depth - 1, holds)).collect()
        };
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => Precondition::IsAuthenticated(self.one(&SCOPES).to_owned()),
            1 => Precondition::MilestoneReached(self.one(&MILESTONES).to_owned()),
            2 => Precondition::HasPriorToolOutput(self.one(&["read_", "drop_all", "x"]).to_owned()),
            4 => Precondition::All(inner(self)),
            5 => Precondition::Any(inner(self)),
            6 if !holds => Precondition::Not(Box::new(self.precondition(depth - 1, holds))),
            _ if holds => Precondition::Cel(format!("'{}' in state.scopes", self.one(&SCOPES))),
            _ => Precondition::Cel(self.expression(3)),
        }
    }

    /// Returns a CEL expression that is true, is false, or fails.
    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.chance(3) {
            return self.atom();
        }
        let a = self.expression(depth - 1);
        let b = self.expression(depth - 1);
        match self.below(5) {
            0 => format!("!({a})"),
            1 | 2 => format!("({a}) && ({b})"),
            3 => format!("({a}) || ({b})"),
            _ => format!("({a}) ? ({b}) : ({})", self.atom()),
        }
    }

    fn atom(&mut self) -> String {
        let scope = self.one(&SCOPES);
        let milestone = self.one(&MILESTONES);
        let key = self.one(&KEYS);
        let name = self.one(&TOOLS);
        let n = self.below(3);
        let tag = self.one(&TAGS);
        match self.below(24) {
            0 | 1 => format!("'{scope}' in state.scopes"),
            2 => format!("state.milestones.exists(m, m == '{milestone}')"),
            3 => format!("state.calls.exists(c, c.tool.endsWith('{name}') && c.turn > {n})"),
            4 => format!("state.calls.all(c, c.status != 'failed' || c.turn < {n})"),
            5 => "state.calls.exists_one(c, c.status == 'succeeded')".to_owned(),
            6 => format!("size(state.calls.filter(c, c.turn == {n})) >= {n}"),
            7 => format!("'{name}' in state.calls.map(c, c.tool)"),
            8 => format!("state.calls[{n}].status == 'succeeded'"),
            9 => format!("has(state.attributes.{key})"),
            10 => format!("state.attributes.{key} == 'a'"),
            11 => format!("state.attributes.{key} > {n}"),
            12 => format!("state.attributes['{key}'] != {n}"),
            13 => format!("'a' in state.attributes.{key}"),
            14 => format!("state.attributes.exists(k, k == '{key}')"),
            15 => format!("tool.server.startsWith('git') && tool.name != '{name}'"),
            16 => format!("'{tag}' in tool.tags"),
            17 => "tool.annotations.readOnlyHint || tool.annotations.destructiveHint".to_owned(),
            18 => "(tool.server + ':w') in state.scopes".to_owned(),
            19 => format!("tool.model_name.contains('{name}') == (size(tool.tags) > {n})"),
            20 => format!("principal.id == 'ann' || principal.id in ['bob', '{name}']"),
            21 => format!("size(state.scopes) + {n} > 3 && size(state.milestones) % 2 == 0"),
            22 => format!("10 / state.calls[0].turn > {n}"),
            _ => format!("state.scopes.map(s, s != '{scope}', s + '!').size() == {n}"),
        }
    }

    fn hint(&mut self) -> Option<bool> {
        [None, None, Some(true), Some(false)][self.below(4)]
    }

    /// Selects each of these items with a probability of `tenths` in ten.
    fn some<T: Copy>(&mut self, of: &[T], tenths: usize) -> Vec<T> {
        of.iter().copied().filter(|_| self.chance(tenths)).collect()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn chance(&mut self, tenths: usize) -> bool {
        self.below(10) < tenths
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }
}
