//! Slow reference evaluation of tools. It applies every rule to every tool, and evaluates every expression with the
//! `cel` crate's own interpreter over plain maps.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Env, Program, Value};
use toolgate_core::precondition::Precondition;
use toolgate_core::state::{AgentState, CallStatus};

use super::generate::{Asked, Case, RuleCase, ToolCase};
use super::{Stands, Visibilities};

/// Case with parsed expressions.
pub struct Reference<'a> {
    case: &'a Case,
    programs: HashMap<&'a str, Program>,
    env: Arc<Env>,
}

impl<'a> Reference<'a> {
    pub fn new(case: &'a Case) -> Self {
        let mut programs = HashMap::new();
        let of_tools = case.tools.iter().map(|tool| &tool.asked);
        let of_servers = case.servers.iter().map(|(_, asked)| asked);
        let of_rules = case.rules.iter().map(|rule| &rule.asked);
        for asked in of_tools.chain(of_servers).chain(of_rules) {
            asked.precondition.iter().for_each(|p| collect(p, &mut programs));
        }
        Self { case, programs, env: Arc::new(Env::stdlib()) }
    }

    pub fn visibilities(&self, state: &AgentState) -> Visibilities {
        let of = |tool: &ToolCase| (tool.model_name(), self.standing(tool, state));
        self.case.tools.iter().map(of).collect()
    }

    fn standing(&self, tool: &ToolCase, state: &AgentState) -> Stands {
        let rules: Vec<_> = self.case.rules.iter().filter(|rule| matches(rule, tool)).collect();
        if rules.iter().any(|rule| rule.denied) {
            return Stands::Hidden;
        }
        let server = self.case.servers.iter().find(|(name, _)| *name == tool.server);
        let of_server = server.map(|(_, asked)| asked);
        let asked: Vec<&Asked> = of_server
            .into_iter()
            .chain([&tool.asked])
            .chain(rules.iter().map(|r| &r.asked))
            .collect();
        if asked.iter().flat_map(|asked| &asked.scopes).any(|scope| !state.scopes.contains(*scope))
        {
            return Stands::Hidden;
        }
        let context = self.context(tool, state);
        let holds = |asked: &&Asked| {
            let precondition = asked.precondition.as_ref();
            precondition.is_none_or(|p| self.holds(p, state, &context) == Some(true))
        };
        if asked.iter().all(holds) { Stands::Open } else { Stands::Locked }
    }

    /// Evaluates a precondition; `None` if it fails.
    fn holds(&self, of: &Precondition, state: &AgentState, context: &Context<'_>) -> Option<bool> {
        match of {
            Precondition::IsAuthenticated(scope) => Some(state.scopes.contains(scope)),
            Precondition::MilestoneReached(name) => Some(state.milestones.contains(name)),
            Precondition::HasPriorToolOutput(prefix) => Some(state.calls.iter().any(|call| {
                let bare = call.tool.splitn(3, "__").nth(2).unwrap_or(&call.tool);
                call.status == CallStatus::Succeeded
                    && (call.tool.starts_with(prefix) || bare.starts_with(prefix))
            })),
            Precondition::All(inner) => self.joined(inner, state, context, false),
            Precondition::Any(inner) => self.joined(inner, state, context, true),
            Precondition::Not(inner) => self.holds(inner, state, context).map(|holds| !holds),
            Precondition::Cel(source) => match self.programs[source.as_str()].execute(context) {
                Ok(Value::Bool(holds)) => Some(holds),
                _ => None,
            },
        }
    }

    /// Combines answers. One `decisive` answer decides; otherwise one failed answer makes the result fail.
    fn joined(
        &self,
        inner: &[Precondition],
        state: &AgentState,
        context: &Context<'_>,
        decisive: bool,
    ) -> Option<bool> {
        let answers: Vec<_> = inner.iter().map(|p| self.holds(p, state, context)).collect();
        if answers.contains(&Some(decisive)) {
            return Some(decisive);
        }
        if answers.contains(&None) { None } else { Some(!decisive) }
    }

    fn context(&self, tool: &ToolCase, state: &AgentState) -> Context<'static> {
        let mut context = Context::with_env(Arc::clone(&self.env));
        let call = |call: &toolgate_core::state::PriorCall| {
            map([
                ("tool", text(&call.tool)),
                ("status", text(call.status.name())),
                ("turn", Value::Int(call.turn.into())),
            ])
        };
        let attributes = state.attributes.iter().map(|(key, json)| (key.as_str(), value(json)));
        context.add_variable_from_value(
            "state",
            map([
                ("scopes", list(state.scopes.iter().map(|s| text(s)))),
                ("milestones", list(state.milestones.iter().map(|s| text(s)))),
                ("calls", list(state.calls.iter().map(call))),
                ("attributes", map(attributes)),
            ]),
        );
        let annotations = map([
            ("readOnlyHint", Value::Bool(tool.read_only.unwrap_or(false))),
            ("destructiveHint", Value::Bool(tool.destructive.unwrap_or(true))),
        ]);
        context.add_variable_from_value(
            "tool",
            map([
                ("server", text(tool.server)),
                ("name", text(tool.name)),
                ("model_name", text(&tool.model_name())),
                ("tags", list(tool.tags.iter().map(|tag| text(tag)))),
                ("annotations", annotations),
            ]),
        );
        context.add_variable_from_value("principal", map([("id", text(&state.principal))]));
        context
    }
}

fn collect<'a>(of: &'a Precondition, programs: &mut HashMap<&'a str, Program>) {
    match of {
        Precondition::All(inner) | Precondition::Any(inner) => {
            inner.iter().for_each(|p| collect(p, programs));
        }
        Precondition::Not(inner) => collect(inner, programs),
        Precondition::Cel(source) => {
            programs.insert(source, Program::compile(source).expect(source));
        }
        _ => {}
    }
}

fn matches(rule: &RuleCase, tool: &ToolCase) -> bool {
    let any = |globs: &[&str], name: &str| globs.is_empty() || globs.iter().any(|g| glob(g, name));
    let hint = |wanted: Option<bool>, actual: bool| wanted.is_none() || wanted == Some(actual);
    any(&rule.servers, tool.server)
        && any(&rule.tools, tool.name)
        && (rule.tags.is_empty() || rule.tags.iter().any(|tag| tool.tags.contains(tag)))
        && hint(rule.read_only, tool.read_only.unwrap_or(false))
        && hint(rule.destructive, tool.destructive.unwrap_or(true))
}

fn glob(glob: &str, name: &str) -> bool {
    match (glob.split_at_checked(1), name.split_at_checked(1)) {
        (None, None) => true,
        (Some(("*", rest)), _) => (0..=name.len()).any(|cut| self::glob(rest, &name[cut..])),
        (Some(("?", rest)), Some((_, tail))) => self::glob(rest, tail),
        (Some((a, rest)), Some((b, tail))) => a == b && self::glob(rest, tail),
        _ => false,
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    Value::List(Arc::new(items.collect()))
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let entries: HashMap<Key, Value> =
        entries.into_iter().map(|(key, value)| (Key::from(key), value)).collect();
    Value::Map(Map { map: Arc::new(entries) })
}

/// Converts a JSON value. Numbers in attributes become doubles, as on the wire.
fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap()),
        serde_json::Value::String(value) => text(value),
        serde_json::Value::Array(items) => list(items.iter().map(value)),
        serde_json::Value::Object(entries) => {
            map(entries.iter().map(|(key, json)| (key.as_str(), value(json))))
        }
    }
}
