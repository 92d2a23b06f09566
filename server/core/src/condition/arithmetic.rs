//! Arithmetic of conditions. It is checked for overflow and does not convert operands, as in CEL.

use super::fuel::Fault;
use super::node::Arithmetic;
use super::value::Value;

pub(super) fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>, Fault> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(Fault::OutOfRange),
        Value::Double(value) => Ok(Value::Double(-value)),
        _ => Err(Fault::WrongType("a number")),
    }
}

pub(super) fn doubles<'a>(operator: Arithmetic, a: f64, b: f64) -> Result<Value<'a>, Fault> {
    Ok(Value::Double(match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder => return Err(Fault::WrongType("a whole number")),
    }))
}

pub(super) fn whole<'a>(
    operator: Arithmetic,
    a: &Value<'a>,
    b: &Value<'a>,
) -> Result<Value<'a>, Fault> {
    use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
    let made = match (operator, a, b) {
        (Divide | Remainder, Value::Int(_), Value::Int(0)) => return Err(Fault::DivisionByZero),
        (Add, Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int),
        (Subtract, Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int),
        (Multiply, Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int),
        (Divide, Value::Int(a), Value::Int(b)) => a.checked_div(*b).map(Value::Int),
        (Remainder, Value::Int(a), Value::Int(b)) => a.checked_rem(*b).map(Value::Int),
        (Add, Value::Timestamp(a), Value::Duration(b))
        | (Add, Value::Duration(a), Value::Timestamp(b)) => a.checked_add(*b).map(Value::Timestamp),
        (Subtract, Value::Timestamp(a), Value::Duration(b)) => {
            a.checked_sub(*b).map(Value::Timestamp)
        }
        (Subtract, Value::Timestamp(a), Value::Timestamp(b))
        | (Subtract, Value::Duration(a), Value::Duration(b)) => {
            a.checked_sub(*b).map(Value::Duration)
        }
        (Add, Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration),
        _ => return Err(Fault::WrongType("of the same type as the other operand")),
    };
    made.ok_or(Fault::OutOfRange)
}
