//! Maximum cost of a condition for lists of a usual length. A condition that costs too much is refused when it is set,
//! so that the budget at evaluation is needed for unusual states only.

use super::fuel::STEPS_A_CONDITION;
use super::node::{Input, Node};

/// Length of a list in the estimate.
const ELEMENTS: usize = 100;

/// Maximum number of steps that a condition may need for lists of that length. Two nested loops fit, three do not.
pub(super) const ESTIMATE_MAX: usize = STEPS_A_CONDITION as usize;

/// Estimates the maximum number of steps, with every list [`ELEMENTS`] long.
pub(super) fn estimate(node: &Node) -> usize {
    let inner: usize = match node {
        Node::Constant(_) | Node::Input(_) | Node::Tool(_) | Node::Local(_) => 0,
        Node::PriorOutput(_) => ELEMENTS,
        Node::Field(a, _) | Node::Has(a, _) | Node::Not(a) | Node::Negate(a) | Node::Size(a) => {
            estimate(a)
        }
        Node::Calendar(_, a) => estimate(a),
        // The estimate is for a name of 64 bytes.
        Node::Matches(a, pattern) => add(estimate(a), pattern.cost(&" ".repeat(64))),
        Node::In(a, b) => match **b {
            Node::Input(Input::Scopes | Input::Milestones | Input::Attributes) => estimate(a),
            _ => add(ELEMENTS, add(estimate(a), estimate(b))),
        },
        Node::Index(a, b)
        | Node::Equal(a, b)
        | Node::And(a, b)
        | Node::Or(a, b)
        | Node::Order(_, a, b)
        | Node::Arithmetic(_, a, b)
        | Node::Text(_, a, b) => add(estimate(a), estimate(b)),
        Node::List(items) => items.iter().fold(0, |sum, item| add(sum, estimate(item))),
        Node::If(parts) => parts.iter().fold(0, |sum, part| add(sum, estimate(part))),
        Node::Quantified(_, range, body) => add(estimate(range), times(estimate(body))),
        Node::Collect(range, filter, make) => {
            let filter = filter.as_ref().map_or(0, |filter| estimate(filter));
            add(estimate(range), times(add(filter, estimate(make))))
        }
    };
    add(inner, 1)
}

fn add(a: usize, b: usize) -> usize {
    a.saturating_add(b)
}

fn times(body: usize) -> usize {
    body.saturating_mul(ELEMENTS)
}
