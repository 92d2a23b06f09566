//! Converts CEL's syntax tree to a checked node: names are known, types fit and the depth is bounded. Stops at the
//! first mistake.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

use super::node::{Constant, Hint, Input, Node, ToolField};
use super::types::{Namespace, Type};

mod functions;
mod macros;
mod operators;

/// Maximum nesting of a condition. Evaluation takes stack for each level.
const DEPTH_MAX: usize = 48;

/// Mistake at a node of the syntax tree.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) id: u64,
    pub(super) problem: String,
}

/// Node and its type.
pub(super) struct Typed {
    pub(super) node: Node,
    pub(super) of: Type,
}

type Lowered = Result<Typed, Wrong>;

/// Conversion of one expression. Holds the variables of the macros around it.
#[derive(Default)]
pub(super) struct Lowering {
    locals: Vec<(String, Type)>,
    depth: usize,
}

/// Checks an expression that must be true or false.
pub(super) fn condition(expression: &IdedExpr) -> Result<Node, Wrong> {
    let lowered = Lowering::default().lower(expression)?;
    match lowered.of {
        Type::Bool => Ok(lowered.node),
        Type::Dyn => wrong(
            expression,
            "may be of any type, and must be a bool: compare it, such as `... == true`",
        ),
        other => wrong(expression, format!("is of type {other}, and must be a bool")),
    }
}

impl Lowering {
    fn lower(&mut self, expression: &IdedExpr) -> Lowered {
        if self.depth == DEPTH_MAX {
            return wrong(expression, format!("is nested more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        let lowered = match &expression.expr {
            Expr::Literal(value) => literal(expression, value),
            Expr::Ident(name) => self.identifier(expression, name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => self.list(&list.elements),
            Expr::Comprehension(comprehension) => self.comprehension(expression, comprehension),
            Expr::Map(_) => wrong(expression, "is a map: conditions can't make maps"),
            Expr::Struct(_) => wrong(expression, "is a message: conditions can't make messages"),
            Expr::Unspecified => wrong(expression, "is no expression"),
        };
        self.depth -= 1;
        lowered
    }

    /// Lowers an operand that must be a value. `state` alone is not a value.
    fn value(&mut self, expression: &IdedExpr) -> Lowered {
        let lowered = self.lower(expression)?;
        if let Type::Namespace(of) = lowered.of {
            let name = of.name();
            let fields = of.fields();
            return wrong(
                expression,
                format!("`{name}` is no value, but its fields are: {fields}"),
            );
        }
        Ok(lowered)
    }

    /// Lowers an operand of a given type.
    fn operand(&mut self, expression: &IdedExpr, wanted: &Type) -> Result<Node, Wrong> {
        let lowered = self.value(expression)?;
        if lowered.of.is(wanted) {
            return Ok(lowered.node);
        }
        wrong(expression, format!("is of type {}, and must be a {wanted}", lowered.of))
    }

    fn identifier(&self, expression: &IdedExpr, name: &str) -> Lowered {
        if let Some(place) = self.locals.iter().rposition(|(local, _)| local == name) {
            return typed(Node::Local(place), self.locals[place].1.clone());
        }
        let namespace = match name {
            "now" => return typed(Node::Input(Input::Now), Type::Timestamp),
            "state" => Namespace::State,
            "tool" => Namespace::Tool,
            "principal" => Namespace::Principal,
            _ => {
                let known = "there are state, tool, principal and now";
                return wrong(expression, format!("unknown variable `{name}`: {known}"));
            }
        };
        typed(Node::bool(false), Type::Namespace(namespace))
    }

    fn select(&mut self, expression: &IdedExpr, select: &SelectExpr) -> Lowered {
        let operand = self.lower(&select.operand)?;
        let name = select.field.as_str();
        let of = match operand.of {
            Type::Namespace(of) => {
                let field = field_of(of, name);
                let unknown =
                    || format!("`{}` has no field `{name}`: it has {}", of.name(), of.fields());
                let field = field.ok_or_else(|| Wrong { id: expression.id, problem: unknown() })?;
                if select.test {
                    return typed(Node::bool(true), Type::Bool);
                }
                return Ok(field);
            }
            Type::Map | Type::Dyn => Type::Dyn,
            Type::Call => match name {
                "tool" | "status" => Type::String,
                "turn" => Type::Int,
                _ => {
                    let problem =
                        format!("a call has no field `{name}`: it has tool, status, turn");
                    return wrong(expression, problem);
                }
            },
            other => return wrong(expression, format!("a {other} has no fields")),
        };
        let operand = Box::new(operand.node);
        if select.test {
            return typed(Node::Has(operand, name.into()), Type::Bool);
        }
        typed(Node::Field(operand, name.into()), of)
    }

    fn list(&mut self, elements: &[IdedExpr]) -> Lowered {
        let mut inner = None;
        let mut nodes = Vec::with_capacity(elements.len());
        for element in elements {
            let lowered = self.value(element)?;
            inner = Some(inner.map_or(lowered.of.clone(), |of: Type| of.join(&lowered.of)));
            nodes.push(lowered.node);
        }
        typed(Node::List(nodes), Type::List(Box::new(inner.unwrap_or(Type::Dyn))))
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Lowered {
        match &call.target {
            Some(target) => self.method(expression, target, call),
            None => self.operator_or_function(expression, call),
        }
    }
}

fn literal(expression: &IdedExpr, value: &LiteralValue) -> Lowered {
    let (constant, of) = match value {
        LiteralValue::Null => (Constant::Null, Type::Null),
        LiteralValue::Boolean(value) => (Constant::Bool(*value.inner()), Type::Bool),
        LiteralValue::Int(value) => (Constant::Int(*value.inner()), Type::Int),
        LiteralValue::Double(value) => (Constant::Double(value.inner().to_bits()), Type::Double),
        LiteralValue::String(value) => (Constant::Text(value.inner().into()), Type::String),
        LiteralValue::UInt(_) => {
            return wrong(expression, "is an unsigned integer: write it without `u`");
        }
        LiteralValue::Bytes(_) => return wrong(expression, "conditions have no bytes"),
    };
    typed(Node::Constant(constant), of)
}

fn field_of(namespace: Namespace, name: &str) -> Option<Typed> {
    let texts = || Type::List(Box::new(Type::String));
    let input = |input, of| Typed { node: Node::Input(input), of };
    let tool = |field, of| Typed { node: Node::Tool(field), of };
    let hint = |hint| tool(ToolField::Hint(hint), Type::Bool);
    Some(match (namespace, name) {
        (Namespace::State, "scopes") => input(Input::Scopes, texts()),
        (Namespace::State, "milestones") => input(Input::Milestones, texts()),
        (Namespace::State, "calls") => input(Input::Calls, Type::List(Box::new(Type::Call))),
        (Namespace::State, "attributes") => input(Input::Attributes, Type::Map),
        (Namespace::Principal, "id") => input(Input::Principal, Type::String),
        (Namespace::Tool, "server") => tool(ToolField::Server, Type::String),
        (Namespace::Tool, "name") => tool(ToolField::Name, Type::String),
        (Namespace::Tool, "model_name") => tool(ToolField::ModelName, Type::String),
        (Namespace::Tool, "tags") => tool(ToolField::Tags, texts()),
        (Namespace::Tool, "annotations") => {
            Typed { node: Node::bool(false), of: Type::Namespace(Namespace::Annotations) }
        }
        (Namespace::Annotations, "readOnlyHint") => hint(Hint::ReadOnly),
        (Namespace::Annotations, "destructiveHint") => hint(Hint::Destructive),
        (Namespace::Annotations, "idempotentHint") => hint(Hint::Idempotent),
        (Namespace::Annotations, "openWorldHint") => hint(Hint::OpenWorld),
        _ => return None,
    })
}

fn typed(node: Node, of: Type) -> Lowered {
    Ok(Typed { node, of })
}

fn wrong<T>(expression: &IdedExpr, problem: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { id: expression.id, problem: problem.into() })
}
