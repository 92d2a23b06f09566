//! Binds a condition to a tool: the tool's fields become constants, and what depends on nothing else is settled at
//! once. Many tools then share the remaining condition, which is evaluated once per call.

use super::eval::Evaluation;
use super::fuel::Fuel;
use super::node::{Constant, Hint, Node, ToolField};
use super::value::Value;
use crate::state::AgentState;

/// Facts about a tool that conditions and rules may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFacts {
    /// Name of the MCP server.
    pub server: Box<str>,
    /// MCP name of the tool.
    pub name: Box<str>,
    /// Name that the model sees.
    pub model_name: Box<str>,
    /// Tags that the registrant gave the tool.
    pub tags: Box<[Box<str>]>,
    /// True if `readOnlyHint` is set; false when absent, as in MCP.
    pub read_only: bool,
    /// True if `destructiveHint` is set; true when absent.
    pub destructive: bool,
    /// True if `idempotentHint` is set; false when absent.
    pub idempotent: bool,
    /// True if `openWorldHint` is set; true when absent.
    pub open_world: bool,
}

impl ToolFacts {
    fn constant(&self, field: ToolField) -> Constant {
        match field {
            ToolField::Server => Constant::Text(self.server.clone()),
            ToolField::Name => Constant::Text(self.name.clone()),
            ToolField::ModelName => Constant::Text(self.model_name.clone()),
            ToolField::Tags => Constant::Texts(self.tags.clone()),
            ToolField::Hint(Hint::ReadOnly) => Constant::Bool(self.read_only),
            ToolField::Hint(Hint::Destructive) => Constant::Bool(self.destructive),
            ToolField::Hint(Hint::Idempotent) => Constant::Bool(self.idempotent),
            ToolField::Hint(Hint::OpenWorld) => Constant::Bool(self.open_world),
        }
    }
}

/// Returns true if the condition reads a field of the tool.
pub(super) fn reads_tool(node: &Node) -> bool {
    let mut found = false;
    each_child(node, &mut |child| found |= reads_tool(child));
    found || matches!(node, Node::Tool(_))
}

/// Counts the regular expressions in the condition.
pub(super) fn patterns(node: &Node) -> usize {
    let mut count = usize::from(matches!(node, Node::Matches(..)));
    each_child(node, &mut |child| count += patterns(child));
    count
}

/// Counts the nodes of the condition.
pub(super) fn size(node: &Node) -> usize {
    let mut count = 1;
    each_child(node, &mut |child| count += size(child));
    count
}

/// Binds the condition to this tool. Adds the steps taken to `steps`.
pub(super) fn bind(node: &Node, tool: &ToolFacts, steps: &mut usize) -> Node {
    *steps += 1;
    let node = match node {
        Node::Tool(field) => return Node::Constant(tool.constant(*field)),
        other => rebuild(other, &mut |child| bind(child, tool, steps)),
    };
    simplified(node, steps)
}

/// Simplifies a node whose children are settled as far as they can be.
fn simplified(node: Node, steps: &mut usize) -> Node {
    let yes = Node::bool(true);
    let no = Node::bool(false);
    match node {
        Node::And(a, b) if *a == no || *b == no => no,
        Node::And(a, b) if *a == yes => *b,
        Node::And(a, b) if *b == yes => *a,
        Node::Or(a, b) if *a == yes || *b == yes => yes,
        Node::Or(a, b) if *a == no => *b,
        Node::Or(a, b) if *b == no => *a,
        Node::If(parts) if parts[0] == yes => {
            let [_, then, _] = *parts;
            then
        }
        Node::If(parts) if parts[0] == no => {
            let [_, _, otherwise] = *parts;
            otherwise
        }
        other => settled(&other, steps).unwrap_or(other),
    }
}

/// Returns the value of a node that depends on no input. Returns `None` if the node depends on one or has no value. A
/// faulty node stays as it is, so that the evaluation reports the fault.
fn settled(node: &Node, steps: &mut usize) -> Option<Node> {
    if matches!(node, Node::Constant(_)) || depends(node) {
        return None;
    }
    let state = AgentState::default();
    let mut fuel = Fuel::default();
    fuel.begin();
    let value = Evaluation::new(&state, &mut fuel).eval(node);
    *steps += fuel.spent() as usize;
    let constant = match value.ok()? {
        Value::Bool(value) => Constant::Bool(value),
        Value::Int(value) => Constant::Int(value),
        Value::Double(value) => Constant::Double(value.to_bits()),
        Value::Text(text) => Constant::Text((*text).into()),
        Value::Timestamp(ms) => Constant::Timestamp(ms),
        Value::Duration(ms) => Constant::Duration(ms),
        _ => return None,
    };
    Some(Node::Constant(constant))
}

fn depends(node: &Node) -> bool {
    let mut found =
        matches!(node, Node::Input(_) | Node::Local(_) | Node::Tool(_) | Node::PriorOutput(_));
    each_child(node, &mut |child| found = found || depends(child));
    found
}

/// Calls `visit` with each child.
fn each_child(node: &Node, visit: &mut dyn FnMut(&Node)) {
    match node {
        Node::Constant(_)
        | Node::Input(_)
        | Node::Tool(_)
        | Node::Local(_)
        | Node::PriorOutput(_) => {}
        Node::Field(a, _)
        | Node::Has(a, _)
        | Node::Not(a)
        | Node::Negate(a)
        | Node::Size(a)
        | Node::Calendar(_, a)
        | Node::Matches(a, _) => visit(a),
        Node::Index(a, b)
        | Node::And(a, b)
        | Node::Or(a, b)
        | Node::Equal(a, b)
        | Node::Order(_, a, b)
        | Node::Arithmetic(_, a, b)
        | Node::In(a, b)
        | Node::Text(_, a, b)
        | Node::Quantified(_, a, b) => {
            visit(a);
            visit(b);
        }
        Node::List(items) => items.iter().for_each(visit),
        Node::If(parts) => parts.iter().for_each(visit),
        Node::Collect(range, filter, make) => {
            visit(range);
            filter.as_deref().into_iter().for_each(&mut *visit);
            visit(make);
        }
    }
}

/// Rebuilds the node with each child replaced by what `make` returns for it.
fn rebuild(node: &Node, make: &mut dyn FnMut(&Node) -> Node) -> Node {
    let mut one = |child: &Node| Box::new(make(child));
    match node {
        Node::Field(a, name) => Node::Field(one(a), name.clone()),
        Node::Has(a, name) => Node::Has(one(a), name.clone()),
        Node::Not(a) => Node::Not(one(a)),
        Node::Negate(a) => Node::Negate(one(a)),
        Node::Size(a) => Node::Size(one(a)),
        Node::Calendar(field, a) => Node::Calendar(*field, one(a)),
        Node::Matches(a, pattern) => Node::Matches(one(a), pattern.clone()),
        Node::Index(a, b) => Node::Index(one(a), one(b)),
        Node::And(a, b) => Node::And(one(a), one(b)),
        Node::Or(a, b) => Node::Or(one(a), one(b)),
        Node::Equal(a, b) => Node::Equal(one(a), one(b)),
        Node::Order(order, a, b) => Node::Order(*order, one(a), one(b)),
        Node::Arithmetic(operator, a, b) => Node::Arithmetic(*operator, one(a), one(b)),
        Node::In(a, b) => Node::In(one(a), one(b)),
        Node::Text(test, a, b) => Node::Text(*test, one(a), one(b)),
        Node::Quantified(of, a, b) => Node::Quantified(*of, one(a), one(b)),
        Node::List(items) => Node::List(items.iter().map(make).collect()),
        Node::If(parts) => Node::If(Box::new([make(&parts[0]), make(&parts[1]), make(&parts[2])])),
        Node::Collect(range, filter, to) => {
            let filter = filter.as_ref().map(|filter| Box::new(make(filter)));
            Node::Collect(Box::new(make(range)), filter, Box::new(make(to)))
        }
        Node::Constant(_)
        | Node::Input(_)
        | Node::Tool(_)
        | Node::Local(_)
        | Node::PriorOutput(_) => node.clone(),
    }
}
