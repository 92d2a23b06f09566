//! Preconditions from the wire, within bounds on nodes and nesting.

use toolgate_proto::v1;
use toolgate_proto::v1::precondition::Condition;

use crate::error::Error;
use crate::precondition::Precondition;

const NODES_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// Parses a precondition that stands in `field`.
pub(super) fn parse(field: &str, wire: &v1::Precondition) -> Result<Precondition, Error> {
    let mut nodes = 0;
    node(field, wire, 1, &mut nodes)
}

/// Renders a precondition.
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
    };
    v1::Precondition { condition: Some(condition) }
}

fn node(
    field: &str,
    wire: &v1::Precondition,
    depth: usize,
    nodes: &mut usize,
) -> Result<Precondition, Error> {
    *nodes += 1;
    if *nodes > NODES_MAX || depth > DEPTH_MAX {
        let problem = format!("at most {NODES_MAX} nodes, nested at most {DEPTH_MAX} deep");
        return Err(Error::field(field, problem));
    }
    let Some(condition) = &wire.condition else {
        return Err(Error::field(field, "says no condition: set one of its fields"));
    };
    let mut list = |wire: &v1::PreconditionList| {
        if wire.preconditions.is_empty() {
            return Err(Error::field(field, "`all` and `any` need at least one operand"));
        }
        let inner = wire.preconditions.iter();
        inner.map(|inner| node(field, inner, depth + 1, nodes)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match condition {
        Condition::IsAuthenticated(scope) => {
            Precondition::IsAuthenticated(text(field, "a scope", scope)?)
        }
        Condition::HasPriorToolOutput(prefix) => {
            Precondition::HasPriorToolOutput(text(field, "a tool's name or prefix", prefix)?)
        }
        Condition::MilestoneReached(name) => {
            Precondition::MilestoneReached(text(field, "a milestone", name)?)
        }
        Condition::All(inner) => Precondition::All(list(inner)?),
        Condition::Any(inner) => Precondition::Any(list(inner)?),
        Condition::Not(inner) => Precondition::Not(Box::new(node(field, inner, depth + 1, nodes)?)),
        Condition::Cel(_) => return Err(Error::NotImplemented("Precondition.cel")),
    })
}

fn text(field: &str, what: &str, value: &str) -> Result<String, Error> {
    if value.is_empty() || value.len() > 256 {
        return Err(Error::field(field, format!("names {what} of 1 to 256 bytes")));
    }
    Ok(value.to_owned())
}
