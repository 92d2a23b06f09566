//! Conditions over the agent's state, in CEL (cel.dev) and as named predicates. They are checked when they are set, and
//! evaluated within a budget. The `cel` crate parses them; types, names and bounds are checked here.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cel::parser::Parser;

mod arithmetic;
mod bind;
mod calendar;
mod cost;
mod eval;
mod fuel;
mod lower;
mod mistake;
mod node;
mod pattern;
#[cfg(test)]
mod tests;
mod types;
mod value;

pub use bind::ToolFacts;
pub use fuel::{Fault, Fuel, STEPS_A_CALL, STEPS_A_CONDITION};
pub use mistake::Mistake;

use crate::state::AgentState;
use eval::Evaluation;
use node::{Input, Node};

/// Maximum size of one CEL expression in bytes.
pub const SOURCE_MAX: usize = 2 << 10;

/// Maximum nesting of parentheses, brackets and arguments in the source.
const NESTING_MAX: u16 = 24;

/// Checked condition. Equal conditions give equal answers, whatever their text.
#[derive(Debug, Clone)]
pub struct Condition {
    text: Arc<str>,
    node: Arc<Node>,
}

impl Condition {
    /// Parses and checks a CEL expression.
    ///
    /// # Errors
    /// Returns the first mistake, with its place.
    pub fn compile(source: &str) -> Result<Self, Mistake> {
        if source.len() > SOURCE_MAX {
            let problem =
                format!("the expression has {} bytes; at most {SOURCE_MAX}", source.len());
            return Err(Mistake { line: 1, column: 1, problem });
        }
        let parsed = parser().parse(source).map_err(|errors| Mistake::of_syntax(&errors))?;
        let node = lower::condition(&parsed).map_err(|wrong| Mistake::at(source, wrong))?;
        let steps = cost::estimate(&node);
        if steps > cost::ESTIMATE_MAX {
            let problem = format!(
                "may take {steps} steps; at most {}: nest macros less deep",
                cost::ESTIMATE_MAX
            );
            return Err(Mistake { line: 1, column: 1, problem });
        }
        Ok(Self::new(source, node))
    }

    /// Returns the condition that the scope is granted.
    #[must_use]
    pub fn scope(scope: &str) -> Self {
        Self::member(scope, Input::Scopes, format!("is_authenticated({scope:?})"))
    }

    /// Returns the condition that the milestone was reached.
    #[must_use]
    pub fn milestone(name: &str) -> Self {
        Self::member(name, Input::Milestones, format!("milestone_reached({name:?})"))
    }

    /// Returns the condition that the tool name of a succeeded prior call begins with the prefix. The name counts with
    /// and without its `mcp__{server}__`.
    #[must_use]
    pub fn prior_output(prefix: &str) -> Self {
        let text = format!("has_prior_tool_output({prefix:?})");
        Self::new(&text, Node::PriorOutput(prefix.into()))
    }

    /// Returns the condition that every inner condition holds.
    #[must_use]
    pub fn all(inner: &[Self]) -> Self {
        let node = joined(inner, true, Node::And);
        Self::new(&format!("all({})", list(inner)), node)
    }

    /// Returns the condition that at least one inner condition holds.
    #[must_use]
    pub fn any(inner: &[Self]) -> Self {
        let node = joined(inner, false, Node::Or);
        Self::new(&format!("any({})", list(inner)), node)
    }

    /// Returns the condition that the inner condition does not hold.
    #[must_use]
    pub fn negation(inner: &Self) -> Self {
        Self::new(&format!("not({inner})"), Node::Not(Box::new((*inner.node).clone())))
    }

    /// Returns true if the condition reads a field of the tool, so that it may differ from one tool to the next.
    #[must_use]
    pub fn reads_tool(&self) -> bool {
        bind::reads_tool(&self.node)
    }

    /// Binds the condition to one tool: everything that depends on the tool alone is settled. Adds the steps taken to
    /// `steps`.
    #[must_use]
    pub fn bind(&self, tool: &ToolFacts, steps: &mut usize) -> Self {
        if !self.reads_tool() {
            return self.clone();
        }
        let node = bind::bind(&self.node, tool, steps);
        Self { text: Arc::clone(&self.text), node: Arc::new(node) }
    }

    /// Returns the answer if it is the same for every state.
    #[must_use]
    pub fn settled(&self) -> Option<bool> {
        match *self.node {
            Node::Constant(node::Constant::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns the maximum number of steps that it takes for lists of a usual length.
    #[must_use]
    pub fn steps(&self) -> usize {
        cost::estimate(&self.node)
    }

    /// Returns the number of nodes in its tree, which take memory.
    #[must_use]
    pub fn size(&self) -> usize {
        bind::size(&self.node)
    }

    /// Returns the number of regular expressions in it, which take memory.
    #[must_use]
    pub fn pattern_count(&self) -> usize {
        bind::patterns(&self.node)
    }

    /// Returns true if the state satisfies the condition.
    ///
    /// # Errors
    /// Returns a fault if the condition has no answer for this state, or needs more steps than are left.
    pub fn holds(&self, state: &AgentState, fuel: &mut Fuel) -> Result<bool, Fault> {
        fuel.begin();
        Evaluation::new(state, fuel).holds(&self.node)
    }

    fn new(text: &str, node: Node) -> Self {
        Self { text: text.into(), node: Arc::new(node) }
    }

    fn member(item: &str, of: Input, text: String) -> Self {
        let node = Node::In(Box::new(Node::text(item)), Box::new(Node::Input(of)));
        Self { text: text.into(), node: Arc::new(node) }
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.hash(state);
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parser() -> Parser {
    Parser::new().max_recursion_depth(NESTING_MAX).error_recovery_limit(4)
}

fn joined(inner: &[Condition], empty: bool, join: fn(Box<Node>, Box<Node>) -> Node) -> Node {
    let nodes = inner.iter().map(|condition| (*condition.node).clone());
    nodes.reduce(|a, b| join(Box::new(a), Box::new(b))).unwrap_or(Node::bool(empty))
}

fn list(inner: &[Condition]) -> String {
    inner.iter().map(Condition::to_string).collect::<Vec<_>>().join(", ")
}
