//! Parsing of preconditions, with limits on nodes and nesting, and rendering of them.

use toolgate_proto::v1;
use toolgate_proto::v1::precondition::Condition;

use toolgate_core::condition;
use toolgate_core::error::Error;
use toolgate_core::precondition::Precondition;

const NODES_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// Maximum bytes of all CEL expressions of one request, and maximum number of their regular expressions. The limits are
/// the same as for a policy.
const EXPRESSIONS_MAX: usize = 64 << 10;
const PATTERNS_MAX: usize = 64;

/// Remaining allowance for the preconditions of one request.
pub(super) struct ConditionBudget {
    expressions: usize,
    patterns: usize,
}

impl Default for ConditionBudget {
    fn default() -> Self {
        Self { expressions: EXPRESSIONS_MAX, patterns: PATTERNS_MAX }
    }
}

/// Parses the precondition in `field`.
pub(super) fn parse(
    field: &str,
    wire: &v1::Precondition,
    budget: &mut ConditionBudget,
) -> Result<Precondition, Error> {
    Parser { field, nodes: 0, budget }.node(wire, 1)
}

pub(super) fn render(precondition: &Precondition) -> v1::Precondition {
    let list = |inner: &[Precondition]| v1::PreconditionList {
        preconditions: inner.iter().map(render).collect(),
    };
    let condition = match precondition {
        Precondition::IsAuthenticated(scope) => Condition::IsAuthenticated(scope.clone()),
        Precondition::HasPriorToolOutput(prefix) => Condition::HasPriorToolOutput(prefix.clone()),
        Precondition::MilestoneReached(name) => Condition::MilestoneReached(name.clone()),
        Precondition::All(inner) => Condition::All(list(inner)),
        Precondition::Any(inner) => Condition::Any(list(inner)),
        Precondition::Not(inner) => Condition::Not(Box::new(render(inner))),
        Precondition::Cel(source) => Condition::Cel(source.clone()),
    };
    v1::Precondition { condition: Some(condition) }
}

/// Parser of one precondition.
struct Parser<'a> {
    field: &'a str,
    nodes: usize,
    budget: &'a mut ConditionBudget,
}

impl Parser<'_> {
    fn node(&mut self, wire: &v1::Precondition, depth: usize) -> Result<Precondition, Error> {
        self.nodes += 1;
        if self.nodes > NODES_MAX || depth > DEPTH_MAX {
            let problem = format!("at most {NODES_MAX} nodes, nested at most {DEPTH_MAX} deep");
            return Err(self.wrong(problem));
        }
        let Some(condition) = &wire.condition else {
            return Err(self.wrong("says no condition: set one of its fields"));
        };
        Ok(match condition {
            Condition::IsAuthenticated(scope) => {
                Precondition::IsAuthenticated(self.text("a scope", scope)?)
            }
            Condition::HasPriorToolOutput(prefix) => {
                Precondition::HasPriorToolOutput(self.text("a tool's name or prefix", prefix)?)
            }
            Condition::MilestoneReached(name) => {
                Precondition::MilestoneReached(self.text("a milestone", name)?)
            }
            Condition::All(inner) => Precondition::All(self.list(inner, depth)?),
            Condition::Any(inner) => Precondition::Any(self.list(inner, depth)?),
            Condition::Not(inner) => Precondition::Not(Box::new(self.node(inner, depth + 1)?)),
            Condition::Cel(source) => self.expression(source)?,
        })
    }

    fn list(
        &mut self,
        wire: &v1::PreconditionList,
        depth: usize,
    ) -> Result<Vec<Precondition>, Error> {
        if wire.preconditions.is_empty() {
            return Err(self.wrong("`all` and `any` need at least one operand"));
        }
        wire.preconditions.iter().map(|inner| self.node(inner, depth + 1)).collect()
    }

    fn expression(&mut self, source: &str) -> Result<Precondition, Error> {
        let Some(left) = self.budget.expressions.checked_sub(source.len()) else {
            return Err(self.wrong("the request's CEL expressions are longer than 64 KiB together"));
        };
        self.budget.expressions = left;
        let compiled = condition::Condition::compile(source);
        let compiled = compiled.map_err(|mistake| self.wrong(mistake.to_string()))?;
        let Some(left) = self.budget.patterns.checked_sub(compiled.pattern_count()) else {
            return Err(self.wrong("the request's CEL expressions have more than 64 patterns"));
        };
        self.budget.patterns = left;
        Ok(Precondition::Cel(source.to_owned()))
    }

    fn text(&self, what: &str, value: &str) -> Result<String, Error> {
        if value.is_empty() || value.len() > 256 {
            return Err(self.wrong(format!("names {what} of 1 to 256 bytes")));
        }
        Ok(value.to_owned())
    }

    fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::field(self.field, problem)
    }
}
