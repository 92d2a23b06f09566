//! Values during the evaluation of a condition. They borrow from the state and the condition. Created values are
//! shared, so that copying a value costs the same for every value.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::fuel::{Fault, Fuel};
use super::node::{Constant, Order};
use crate::state::PriorCall;

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Text<'a>),
    Timestamp(i64),
    Duration(i64),
    Set(&'a BTreeSet<String>),
    Texts(&'a [Box<str>]),
    Calls(&'a [PriorCall]),
    Call(&'a PriorCall),
    Array(&'a [Json]),
    Map(&'a Map<String, Json>),
    List(Rc<Vec<Value<'a>>>),
}

#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Made(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    pub(super) fn of_constant(constant: &'a Constant) -> Self {
        match constant {
            Constant::Null => Self::Null,
            Constant::Bool(value) => Self::Bool(*value),
            Constant::Int(value) => Self::Int(*value),
            Constant::Double(bits) => Self::Double(f64::from_bits(*bits)),
            Constant::Text(text) => Self::text(text),
            Constant::Texts(texts) => Self::Texts(texts),
            Constant::Timestamp(ms) => Self::Timestamp(*ms),
            Constant::Duration(ms) => Self::Duration(*ms),
        }
    }

    /// Converts a JSON value. Numbers of attributes become doubles, as on the wire.
    pub(super) fn of_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::text(text),
            Json::Array(items) => Self::Array(items),
            Json::Object(map) => Self::Map(map),
        }
    }

    /// Returns the elements of a list, or the keys of a map.
    pub(super) fn elements(self) -> Result<Elements<'a>, Fault> {
        Ok(match self {
            Self::Set(set) => Elements::Set(set.iter()),
            Self::Texts(texts) => Elements::Texts(texts.iter()),
            Self::Calls(calls) => Elements::Calls(calls.iter()),
            Self::Array(items) => Elements::Array(items.iter()),
            Self::Map(map) => Elements::Keys(map.keys()),
            Self::List(list) => Elements::List(list, 0),
            _ => return Err(Fault::WrongType("a list or a map")),
        })
    }

    pub(super) fn is_bool(&self) -> Result<bool, Fault> {
        match self {
            Self::Bool(value) => Ok(*value),
            _ => Err(Fault::WrongType("a bool")),
        }
    }

    pub(super) fn as_text(&self) -> Result<&str, Fault> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(Fault::WrongType("a string")),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// Iterator over the elements that a macro visits.
pub(super) enum Elements<'a> {
    Set(std::collections::btree_set::Iter<'a, String>),
    Texts(std::slice::Iter<'a, Box<str>>),
    Calls(std::slice::Iter<'a, PriorCall>),
    Array(std::slice::Iter<'a, Json>),
    Keys(serde_json::map::Keys<'a>),
    List(Rc<Vec<Value<'a>>>, usize),
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn nth(&mut self, place: usize) -> Option<Value<'a>> {
        match self {
            Self::Set(items) => items.nth(place).map(|text| Value::text(text)),
            Self::Texts(items) => items.nth(place).map(|text| Value::text(text)),
            Self::Calls(items) => items.nth(place).map(Value::Call),
            Self::Array(items) => items.nth(place).map(Value::of_json),
            Self::Keys(items) => items.nth(place).map(|text| Value::text(text)),
            Self::List(items, next) => items.get(*next + place).cloned(),
        }
    }

    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Self::Set(items) => items.next().map(|text| Value::text(text)),
            Self::Texts(items) => items.next().map(|text| Value::text(text)),
            Self::Calls(items) => items.next().map(Value::Call),
            Self::Array(items) => items.next().map(Value::of_json),
            Self::Keys(items) => items.next().map(|text| Value::text(text)),
            Self::List(items, next) => {
                let item = items.get(*next).cloned();
                *next += 1;
                item
            }
        }
    }
}

/// Returns true if the values are equal: numbers by value, lists and maps by content. Values of unlike types are never
/// equal.
pub(super) fn equal(a: &Value<'_>, b: &Value<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    fuel.spend(1)?;
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => {
            fuel.spend_on_text(a.len().min(b.len()))?;
            **a == **b
        }
        (Value::Timestamp(a), Value::Timestamp(b)) | (Value::Duration(a), Value::Duration(b)) => {
            a == b
        }
        (Value::Map(a), Value::Map(b)) => maps_equal(a, b, fuel)?,
        (Value::Call(a), Value::Call(b)) => {
            fuel.spend_on_text(a.tool.len().min(b.tool.len()))?;
            (&a.tool, a.status, a.turn) == (&b.tool, b.status, b.turn)
        }
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => a == b,
            _ => lists_equal(a, b, fuel)?,
        },
    })
}

fn lists_equal(a: &Value<'_>, b: &Value<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    if matches!(a, Value::Map(_)) || matches!(b, Value::Map(_)) {
        return Ok(false);
    }
    let (Ok(mut a), Ok(mut b)) = (a.clone().elements(), b.clone().elements()) else {
        return Ok(false);
    };
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ok(true),
            (Some(a), Some(b)) if equal(&a, &b, fuel)? => {}
            _ => return Ok(false),
        }
    }
}

fn maps_equal(
    a: &Map<String, Json>,
    b: &Map<String, Json>,
    fuel: &mut Fuel,
) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a {
        fuel.spend_on_text(key.len())?;
        let Some(other) = b.get(key) else { return Ok(false) };
        if !equal(&Value::of_json(value), &Value::of_json(other), fuel)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if `a` and `b` stand in this order. `NaN` has no order and is a fault.
pub(super) fn ordered(
    order: Order,
    a: &Value<'_>,
    b: &Value<'_>,
    fuel: &mut Fuel,
) -> Result<bool, Fault> {
    let ordering = match (a, b) {
        (Value::Int(a), Value::Int(b))
        | (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => {
            fuel.spend_on_text(a.len().min(b.len()))?;
            (**a).cmp(&**b)
        }
        _ => {
            let (Some(a), Some(b)) = (a.number(), b.number()) else {
                return Err(Fault::WrongType("two values that can be ordered"));
            };
            a.partial_cmp(&b).ok_or(Fault::WrongType("numbers, not NaN"))?
        }
    };
    Ok(match order {
        Order::Less => ordering == Ordering::Less,
        Order::LessOrEqual => ordering != Ordering::Greater,
        Order::Greater => ordering == Ordering::Greater,
        Order::GreaterOrEqual => ordering != Ordering::Less,
    })
}
