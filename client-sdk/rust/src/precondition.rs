//! Preconditions on an agent's state for showing or calling a tool, as protobuf messages. The service refuses empty
//! texts, empty lists, more than 64 nodes and more than 8 levels.
//!
//! ```
//! use toolgate_client::precondition::{all_of, is_authenticated, milestone_reached, not};
//!
//! let writes = all_of([is_authenticated("chat:write"), not(milestone_reached("read_only"))]);
//! ```

use toolgate_proto::v1::precondition::Condition;
use toolgate_proto::v1::{Precondition, PreconditionList};

/// Builds a condition that holds if the agent's state grants `scope`.
#[must_use]
pub fn is_authenticated(scope: impl Into<String>) -> Precondition {
    of(Condition::IsAuthenticated(scope.into()))
}

/// Builds a condition that holds if a tool whose name begins with `prefix` was called successfully before.
#[must_use]
pub fn has_prior_tool_output(prefix: impl Into<String>) -> Precondition {
    of(Condition::HasPriorToolOutput(prefix.into()))
}

/// Builds a condition that holds if the agent's state names the milestone.
#[must_use]
pub fn milestone_reached(name: impl Into<String>) -> Precondition {
    of(Condition::MilestoneReached(name.into()))
}

/// Builds a condition that holds if the CEL expression over `state`, `tool`, `principal` and `now` is true.
#[must_use]
pub fn cel(expression: impl Into<String>) -> Precondition {
    of(Condition::Cel(expression.into()))
}

/// Builds a condition that holds if every operand holds. Operands that are an `all_of` are merged into it.
#[must_use]
pub fn all_of(operands: impl IntoIterator<Item = Precondition>) -> Precondition {
    let merged = operands.into_iter().flat_map(|operand| match operand.condition {
        Some(Condition::All(list)) => list.preconditions,
        condition => vec![Precondition { condition }],
    });
    of(Condition::All(PreconditionList { preconditions: merged.collect() }))
}

/// Builds a condition that holds if at least one operand holds. Operands that are an `any_of` are merged into it.
#[must_use]
pub fn any_of(operands: impl IntoIterator<Item = Precondition>) -> Precondition {
    let merged = operands.into_iter().flat_map(|operand| match operand.condition {
        Some(Condition::Any(list)) => list.preconditions,
        condition => vec![Precondition { condition }],
    });
    of(Condition::Any(PreconditionList { preconditions: merged.collect() }))
}

/// Builds a condition that holds if the operand does not. The negation of a `not` is the inner condition.
#[must_use]
pub fn not(operand: Precondition) -> Precondition {
    match operand.condition {
        Some(Condition::Not(inner)) => *inner,
        condition => of(Condition::Not(Box::new(Precondition { condition }))),
    }
}

fn of(condition: Condition) -> Precondition {
    Precondition { condition: Some(condition) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_a_kind_are_merged_and_two_negations_cancel() {
        let [a, b, c] = ["a", "b", "c"].map(is_authenticated);
        let whole = all_of([a.clone(), b.clone(), c.clone()]);
        assert_eq!(all_of([all_of([a.clone(), b.clone()]), c.clone()]), whole);
        let either = any_of([a.clone(), any_of([b.clone(), c.clone()])]);
        assert_eq!(either, any_of([a.clone(), b.clone(), c]));
        assert_ne!(all_of([any_of([a.clone(), b.clone()])]), all_of([a.clone(), b]));
        assert_eq!(not(not(a.clone())), a);
    }
}
