//! Macros. The parser expands them into loops over an accumulator. This module turns them back into macros, so that no
//! other loop can be written.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators as op,
};

use super::{Lowered, Lowering, typed, wrong};
use crate::condition::node::{Node, Quantifier};
use crate::condition::types::Type;

/// Macro as it was written.
enum Macro<'e> {
    Quantified(Quantifier, &'e IdedExpr),
    Collect(Option<&'e IdedExpr>, &'e IdedExpr),
}

impl Lowering {
    pub(super) fn comprehension(
        &mut self,
        expression: &IdedExpr,
        written_out: &ComprehensionExpr,
    ) -> Lowered {
        let range = self.value(&written_out.iter_range)?;
        let element = match &range.of {
            Type::List(inner) => (**inner).clone(),
            Type::Map => Type::String,
            Type::Dyn => Type::Dyn,
            other => return wrong(expression, format!("a {other} has no elements")),
        };
        let Some(found) = recognise(written_out) else {
            return wrong(expression, "is a loop that no macro makes");
        };
        self.locals.push((written_out.iter_var.clone(), element));
        let lowered = self.body(range.node, &found);
        self.locals.pop();
        lowered
    }

    fn body(&mut self, range: Node, found: &Macro<'_>) -> Lowered {
        let range = Box::new(range);
        match found {
            Macro::Quantified(quantifier, body) => {
                let body = self.operand(body, &Type::Bool)?;
                typed(Node::Quantified(*quantifier, range, Box::new(body)), Type::Bool)
            }
            Macro::Collect(filter, make) => {
                let filter = match filter {
                    Some(filter) => Some(Box::new(self.operand(filter, &Type::Bool)?)),
                    None => None,
                };
                let make = self.value(make)?;
                let of = Type::List(Box::new(make.of));
                typed(Node::Collect(range, filter, Box::new(make.node)), of)
            }
        }
    }
}

fn recognise(written_out: &ComprehensionExpr) -> Option<Macro<'_>> {
    let (name, arguments) = call(&written_out.loop_step)?;
    let starts_with = |wanted: bool| {
        let init = &written_out.accu_init.expr;
        matches!(init, Expr::Literal(LiteralValue::Boolean(value)) if *value.inner() == wanted)
    };
    match (name, arguments) {
        (op::LOGICAL_OR, [_, body]) if starts_with(false) => {
            Some(Macro::Quantified(Quantifier::Exists, body))
        }
        (op::LOGICAL_AND, [_, body]) if starts_with(true) => {
            Some(Macro::Quantified(Quantifier::All, body))
        }
        (op::ADD, _) => Some(Macro::Collect(None, added(&written_out.loop_step)?)),
        (op::CONDITIONAL, [filter, step, _]) => match &written_out.accu_init.expr {
            Expr::Literal(LiteralValue::Int(_)) => {
                Some(Macro::Quantified(Quantifier::ExistsOne, filter))
            }
            _ => Some(Macro::Collect(Some(filter), added(step)?)),
        },
        _ => None,
    }
}

/// Returns the expression that a step adds to the list so far.
fn added(step: &IdedExpr) -> Option<&IdedExpr> {
    match call(step)? {
        (op::ADD, [_, list]) => match &list.expr {
            Expr::List(list) => list.elements.first(),
            _ => None,
        },
        _ => None,
    }
}

fn call(expression: &IdedExpr) -> Option<(&str, &[IdedExpr])> {
    match &expression.expr {
        Expr::Call(CallExpr { func_name, args, .. }) => Some((func_name, args)),
        _ => None,
    }
}
