//! Operators: the types that each takes and the type that it gives.

use cel::common::ast::{CallExpr, IdedExpr, operators as op};

use super::{Lowered, Lowering, Typed, typed, wrong};
use crate::condition::node::{Arithmetic, Node, Order};
use crate::condition::types::Type;

impl Lowering {
    pub(super) fn operator_or_function(
        &mut self,
        expression: &IdedExpr,
        call: &CallExpr,
    ) -> Lowered {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [a, b]) => self.logical(Node::And, a, b),
            (op::LOGICAL_OR, [a, b]) => self.logical(Node::Or, a, b),
            (op::LOGICAL_NOT, [a]) => {
                let inner = self.operand(a, &Type::Bool)?;
                typed(Node::Not(Box::new(inner)), Type::Bool)
            }
            (op::NEGATE, [a]) => {
                let lowered = self.value(a)?;
                if !lowered.of.is_number() {
                    return wrong(a, format!("is of type {}, and must be a number", lowered.of));
                }
                typed(Node::Negate(Box::new(lowered.node)), lowered.of)
            }
            (op::CONDITIONAL, [when, then, otherwise]) => self.branches(when, then, otherwise),
            (op::EQUALS, [a, b]) => self.equality(expression, a, b),
            (op::NOT_EQUALS, [a, b]) => {
                let equal = self.equality(expression, a, b)?;
                typed(Node::Not(Box::new(equal.node)), Type::Bool)
            }
            (op::INDEX, [of, place]) => self.index(expression, of, place),
            (op::IN, [item, of]) => self.membership(expression, item, of),
            (name, [a, b]) => match (order(name), arithmetic(name)) {
                (Some(order), _) => self.ordering(expression, order, a, b),
                (_, Some(operator)) => self.arithmetic(expression, operator, a, b),
                _ => self.function(expression, call),
            },
            _ => self.function(expression, call),
        }
    }

    fn logical(
        &mut self,
        make: fn(Box<Node>, Box<Node>) -> Node,
        a: &IdedExpr,
        b: &IdedExpr,
    ) -> Lowered {
        let a = self.operand(a, &Type::Bool)?;
        let b = self.operand(b, &Type::Bool)?;
        typed(make(Box::new(a), Box::new(b)), Type::Bool)
    }

    fn branches(&mut self, when: &IdedExpr, then: &IdedExpr, otherwise: &IdedExpr) -> Lowered {
        let when = self.operand(when, &Type::Bool)?;
        let then = self.value(then)?;
        let otherwise = self.value(otherwise)?;
        let of = then.of.join(&otherwise.of);
        typed(Node::If(Box::new([when, then.node, otherwise.node])), of)
    }

    fn equality(&mut self, expression: &IdedExpr, a: &IdedExpr, b: &IdedExpr) -> Lowered {
        let a = self.value(a)?;
        let b = self.value(b)?;
        if !a.of.may_equal(&b.of) {
            return wrong(expression, format!("a {} never equals a {}", a.of, b.of));
        }
        typed(Node::Equal(Box::new(a.node), Box::new(b.node)), Type::Bool)
    }

    fn ordering(
        &mut self,
        expression: &IdedExpr,
        order: Order,
        a: &IdedExpr,
        b: &IdedExpr,
    ) -> Lowered {
        let a = self.value(a)?;
        let b = self.value(b)?;
        let comparable = |of: &Type| {
            let texts = matches!(of, Type::String | Type::Timestamp | Type::Duration);
            texts || of.is_number()
        };
        if !(comparable(&a.of) && comparable(&b.of) && a.of.may_equal(&b.of)) {
            return wrong(expression, format!("a {} and a {} have no order", a.of, b.of));
        }
        typed(Node::Order(order, Box::new(a.node), Box::new(b.node)), Type::Bool)
    }

    fn arithmetic(
        &mut self,
        expression: &IdedExpr,
        operator: Arithmetic,
        a: &IdedExpr,
        b: &IdedExpr,
    ) -> Lowered {
        let a = self.value(a)?;
        let b = self.value(b)?;
        let Some(of) = result_of(operator, &a.of, &b.of) else {
            let problem = format!("can't be taken of a {} and a {}", a.of, b.of);
            return wrong(expression, problem);
        };
        typed(Node::Arithmetic(operator, Box::new(a.node), Box::new(b.node)), of)
    }

    fn index(&mut self, expression: &IdedExpr, of: &IdedExpr, place: &IdedExpr) -> Lowered {
        let Typed { node, of } = self.value(of)?;
        let place = self.value(place)?;
        let (fits, of) = match of {
            Type::Map => (place.of.is(&Type::String), Type::Dyn),
            Type::List(inner) => (place.of.is(&Type::Int), *inner),
            Type::Dyn => (place.of.is(&Type::Int) || place.of == Type::String, Type::Dyn),
            other => return wrong(expression, format!("a {other} has no elements")),
        };
        if !fits {
            return wrong(expression, format!("a {} is no place in it", place.of));
        }
        typed(Node::Index(Box::new(node), Box::new(place.node)), of)
    }

    fn membership(&mut self, expression: &IdedExpr, item: &IdedExpr, of: &IdedExpr) -> Lowered {
        let item = self.value(item)?;
        let of = self.value(of)?;
        let fits = match &of.of {
            Type::Map => item.of.is(&Type::String),
            Type::List(inner) => item.of.may_equal(inner),
            Type::Dyn => true,
            _ => false,
        };
        if !fits {
            return wrong(expression, format!("a {} is never in a {}", item.of, of.of));
        }
        typed(Node::In(Box::new(item.node), Box::new(of.node)), Type::Bool)
    }
}

fn order(name: &str) -> Option<Order> {
    Some(match name {
        op::LESS => Order::Less,
        op::LESS_EQUALS => Order::LessOrEqual,
        op::GREATER => Order::Greater,
        op::GREATER_EQUALS => Order::GreaterOrEqual,
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Arithmetic> {
    Some(match name {
        op::ADD => Arithmetic::Add,
        op::SUBSTRACT => Arithmetic::Subtract,
        op::MULTIPLY => Arithmetic::Multiply,
        op::DIVIDE => Arithmetic::Divide,
        op::MODULO => Arithmetic::Remainder,
        _ => return None,
    })
}

fn result_of(operator: Arithmetic, a: &Type, b: &Type) -> Option<Type> {
    use Arithmetic::{Add, Remainder, Subtract};
    use Type::{Double, Duration, Dyn, Int, String, Timestamp};
    Some(match (operator, a, b) {
        (_, Int, Int) => Int,
        (Remainder, Int | Dyn, Int | Dyn) => Dyn,
        (Remainder, _, _) => return None,
        (_, Double, Double) => Double,
        (Add, String, String) => String,
        (Add, Timestamp, Duration) | (Add, Duration, Timestamp) => Timestamp,
        (Subtract, Timestamp, Duration) => Timestamp,
        (Subtract, Timestamp, Timestamp) => Duration,
        (Add | Subtract, Duration, Duration) => Duration,
        (_, Int | Double, Dyn) | (_, Dyn, Int | Double | Dyn) => Dyn,
        (Add, String, Dyn) | (Add, Dyn, String) => String,
        _ => return None,
    })
}
