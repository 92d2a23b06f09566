//! Evaluates checked conditions and counts every step. Faults behave like CEL's errors: `false && fault` is false,
//! `true || fault` is true, and everything else that meets a fault is a fault. A macro ends at the first element whose
//! body is a fault, like the macros of the `cel` crate.

use std::rc::Rc;

use super::arithmetic::{doubles, negate, whole};
use super::calendar;
use super::fuel::{Fault, Fuel, TEXT_MAX};
use super::node::{Arithmetic, Constant, Input, Node, Quantifier, TextTest};
use super::value::{Text, Value, equal, ordered};
use crate::state::{AgentState, CallStatus};

/// Steps that an element of a created list costs, for its memory.
const ELEMENT_COST: usize = 4;

pub(super) struct Evaluation<'a, 'f> {
    pub(super) state: &'a AgentState,
    pub(super) fuel: &'f mut Fuel,
    locals: Vec<Value<'a>>,
}

impl<'a, 'f> Evaluation<'a, 'f> {
    pub(super) fn new(state: &'a AgentState, fuel: &'f mut Fuel) -> Self {
        Self { state, fuel, locals: Vec::new() }
    }

    /// Evaluates a node that is true or false.
    pub(super) fn holds(&mut self, node: &'a Node) -> Result<bool, Fault> {
        match node {
            Node::Not(inner) => self.fuel.spend(1).and_then(|()| Ok(!self.holds(inner)?)),
            Node::And(a, b) => self.fuel.spend(1).and_then(|()| Ok(!self.either(a, b, false)?)),
            Node::Or(a, b) => self.fuel.spend(1).and_then(|()| self.either(a, b, true)),
            Node::Equal(a, b) => {
                let a = self.eval(a)?;
                let b = self.eval(b)?;
                equal(&a, &b, self.fuel)
            }
            Node::Order(order, a, b) => {
                let a = self.eval(a)?;
                let b = self.eval(b)?;
                self.fuel.spend(1)?;
                ordered(*order, &a, &b, self.fuel)
            }
            Node::In(item, of) => {
                // Most conditions are of this form: a named scope or milestone.
                if let (Node::Constant(Constant::Text(text)), Node::Input(input)) = (&**item, &**of)
                    && let Value::Set(set) = self.input(*input)
                {
                    self.fuel.spend(3 + text.len() / 64)?;
                    return Ok(set.contains(&**text));
                }
                let item = self.eval(item)?;
                let of = self.eval(of)?;
                self.fuel.spend(1)?;
                self.is_in(&item, of)
            }
            Node::Has(of, name) => has(&self.eval(of)?, name),
            Node::Text(test, text, part) => {
                let text = self.eval(text)?;
                let part = self.eval(part)?;
                self.fuel.spend(1)?;
                self.text(*test, text.as_text()?, part.as_text()?)
            }
            Node::Matches(text, pattern) => {
                let text = self.eval(text)?;
                let text = text.as_text()?;
                self.fuel.spend(pattern.cost(text))?;
                Ok(pattern.is_match(text))
            }
            Node::Quantified(quantifier, range, body) => self.quantified(*quantifier, range, body),
            Node::PriorOutput(prefix) => self.has_prior_output(prefix),
            other => self.eval(other)?.is_bool(),
        }
    }

    /// Evaluates a node. Leaves, which are half of all nodes, are settled without a call.
    #[inline(always)]
    pub(super) fn eval(&mut self, node: &'a Node) -> Result<Value<'a>, Fault> {
        self.fuel.spend(1)?;
        match node {
            Node::Constant(constant) => Ok(Value::of_constant(constant)),
            Node::Input(input) => Ok(self.input(*input)),
            Node::Local(place) => Ok(self.locals[*place].clone()),
            _ => self.compound(node),
        }
    }

    #[inline(never)]
    fn compound(&mut self, node: &'a Node) -> Result<Value<'a>, Fault> {
        Ok(match node {
            Node::Field(of, name) => field(&self.eval(of)?, name)?,
            Node::Index(of, place) => {
                let of = self.eval(of)?;
                let place = self.eval(place)?;
                self.index(of, &place)?
            }
            Node::List(items) => self.list(items)?,
            Node::Negate(inner) => negate(&self.eval(inner)?)?,
            Node::If(parts) => {
                let branch = if self.holds(&parts[0])? { &parts[1] } else { &parts[2] };
                self.eval(branch)?
            }
            Node::Arithmetic(operator, a, b) => {
                let a = self.eval(a)?;
                let b = self.eval(b)?;
                self.arithmetic(*operator, &a, &b)?
            }
            Node::Size(of) => {
                let of = self.eval(of)?;
                Value::Int(self.size(&of)?)
            }
            Node::Calendar(of, moment) => match self.eval(moment)? {
                Value::Timestamp(ms) => Value::Int(calendar::field(*of, ms)),
                _ => return Err(Fault::WrongType("a timestamp")),
            },
            Node::Collect(range, filter, make) => self.collect(range, filter.as_deref(), make)?,
            Node::Not(_)
            | Node::And(..)
            | Node::Or(..)
            | Node::Equal(..)
            | Node::Order(..)
            | Node::In(..)
            | Node::Has(..)
            | Node::Text(..)
            | Node::Matches(..)
            | Node::Quantified(..)
            | Node::PriorOutput(_) => Value::Bool(self.holds(node)?),
            // Leaves are settled before this. A condition is bound to its tool before it is evaluated.
            Node::Constant(_) | Node::Input(_) | Node::Local(_) | Node::Tool(_) => {
                return Err(Fault::WrongType("bound to a tool"));
            }
        })
    }

    fn input(&self, input: Input) -> Value<'a> {
        match input {
            Input::Scopes => Value::Set(&self.state.scopes),
            Input::Calls => Value::Calls(&self.state.calls),
            Input::Milestones => Value::Set(&self.state.milestones),
            Input::Attributes => Value::Map(&self.state.attributes),
            Input::Principal => Value::text(&self.state.principal),
            Input::Now => Value::Timestamp(self.state.now_ms),
        }
    }

    /// Returns `a || b` if `decisive` is true, and the negation of `a && b` if it is false.
    fn either(&mut self, a: &'a Node, b: &'a Node, decisive: bool) -> Result<bool, Fault> {
        let first = self.holds(a);
        if first.as_ref().is_ok_and(|value| *value == decisive) {
            return Ok(true);
        }
        match (first, self.holds(b)) {
            (_, Ok(second)) if second == decisive => Ok(true),
            (Ok(_), Ok(_)) => Ok(false),
            (Err(fault), _) | (Ok(_), Err(fault)) => Err(fault),
        }
    }

    fn index(&mut self, of: Value<'a>, place: &Value<'a>) -> Result<Value<'a>, Fault> {
        if let Value::Map(_) = of {
            return field(&of, place.as_text()?);
        }
        let place = match place {
            Value::Int(place) => *place,
            // Numbers of attributes are doubles.
            Value::Double(place) if place.fract() == 0.0 && place.abs() < 1e9 => *place as i64,
            _ => return Err(Fault::WrongType("a whole number")),
        };
        let missing = Fault::NoSuchElement(place);
        let at = usize::try_from(place).map_err(|_| missing.clone())?;
        if let Value::Set(set) = of {
            // A set is walked from its beginning.
            self.fuel.spend(at.min(set.len()) / 4)?;
        }
        of.elements()?.nth(at).ok_or(missing)
    }

    fn list(&mut self, items: &'a [Node]) -> Result<Value<'a>, Fault> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            self.fuel.spend(ELEMENT_COST)?;
            list.push(self.eval(item)?);
        }
        Ok(Value::List(Rc::new(list)))
    }

    fn is_in(&mut self, item: &Value<'a>, of: Value<'a>) -> Result<bool, Fault> {
        match (item, of) {
            (Value::Text(text), Value::Set(set)) => {
                self.fuel.spend_on_text(text.len())?;
                Ok(set.contains(&**text))
            }
            (Value::Text(text), Value::Map(map)) => {
                self.fuel.spend_on_text(text.len())?;
                Ok(map.contains_key(&**text))
            }
            (_, Value::Map(_)) => Err(Fault::WrongType("a string, as keys are")),
            (item, of) => {
                for element in of.elements()? {
                    if equal(item, &element, self.fuel)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn size(&mut self, of: &Value<'a>) -> Result<i64, Fault> {
        let size = match of {
            Value::Text(text) => {
                self.fuel.spend_on_text(text.len())?;
                text.chars().count()
            }
            Value::Set(set) => set.len(),
            Value::Texts(texts) => texts.len(),
            Value::Calls(calls) => calls.len(),
            Value::Array(items) => items.len(),
            Value::Map(map) => map.len(),
            Value::List(list) => list.len(),
            _ => return Err(Fault::WrongType("a string, a list or a map")),
        };
        i64::try_from(size).map_err(|_| Fault::OutOfRange)
    }

    fn text(&mut self, test: TextTest, text: &str, part: &str) -> Result<bool, Fault> {
        Ok(match test {
            TextTest::StartsWith | TextTest::EndsWith => {
                self.fuel.spend_on_text(part.len())?;
                if test == TextTest::EndsWith {
                    text.ends_with(part)
                } else {
                    text.starts_with(part)
                }
            }
            TextTest::Contains => {
                self.fuel.spend((text.len() + part.len()) / 16)?;
                text.contains(part)
            }
        })
    }

    fn quantified(
        &mut self,
        quantifier: Quantifier,
        range: &'a Node,
        body: &'a Node,
    ) -> Result<bool, Fault> {
        let mut found = 0_usize;
        for element in self.eval(range)?.elements()? {
            let holds = self.test(element, body)?;
            match quantifier {
                Quantifier::All if !holds => return Ok(false),
                Quantifier::Exists if holds => return Ok(true),
                _ => found += usize::from(holds),
            }
        }
        Ok(match quantifier {
            Quantifier::All => true,
            Quantifier::Exists => false,
            Quantifier::ExistsOne => found == 1,
        })
    }

    fn collect(
        &mut self,
        range: &'a Node,
        filter: Option<&'a Node>,
        make: &'a Node,
    ) -> Result<Value<'a>, Fault> {
        let mut made = Vec::new();
        for element in self.eval(range)?.elements()? {
            self.fuel.spend(ELEMENT_COST)?;
            if let Some(filter) = filter
                && !self.test(element.clone(), filter)?
            {
                continue;
            }
            made.push(self.with(element, make)?);
        }
        Ok(Value::List(Rc::new(made)))
    }

    /// Evaluates a macro's body to true or false, with its variable set to `local`.
    fn test(&mut self, local: Value<'a>, body: &'a Node) -> Result<bool, Fault> {
        self.fuel.spend(1)?;
        self.locals.push(local);
        let outcome = self.holds(body);
        self.locals.pop();
        outcome
    }

    /// Evaluates a macro's body to a value, with its variable set to `local`.
    fn with(&mut self, local: Value<'a>, body: &'a Node) -> Result<Value<'a>, Fault> {
        self.locals.push(local);
        let outcome = self.eval(body);
        self.locals.pop();
        outcome
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>, Fault> {
        match (operator, a, b) {
            (Arithmetic::Add, Value::Text(a), Value::Text(b)) => {
                let length = a.len() + b.len();
                if length > TEXT_MAX {
                    return Err(Fault::TextTooLong);
                }
                self.fuel.spend(1 + length / 16)?;
                Ok(Value::Text(Text::Made([&**a, &**b].concat().into())))
            }
            (_, Value::Double(a), Value::Double(b)) => doubles(operator, *a, *b),
            _ => whole(operator, a, b),
        }
    }

    /// Searches the prior calls, as [`crate::precondition::Precondition::HasPriorToolOutput`] describes.
    fn has_prior_output(&mut self, prefix: &str) -> Result<bool, Fault> {
        for call in &self.state.calls {
            self.fuel.spend(1)?;
            self.fuel.spend_on_text(prefix.len().min(call.tool.len()))?;
            let bare = call.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            let named = call.tool.starts_with(prefix)
                || bare.is_some_and(|(_, name)| name.starts_with(prefix));
            if named && call.status == CallStatus::Succeeded {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn field<'a>(of: &Value<'a>, name: &str) -> Result<Value<'a>, Fault> {
    match of {
        Value::Map(map) => {
            let found = map.get(name).map(Value::of_json);
            found.ok_or_else(|| Fault::NoSuchKey(shortened(name)))
        }
        Value::Call(call) => match name {
            "tool" => Ok(Value::text(&call.tool)),
            "status" => Ok(Value::text(call.status.name())),
            "turn" => Ok(Value::Int(i64::from(call.turn))),
            _ => Err(Fault::NoSuchKey(shortened(name))),
        },
        _ => Err(Fault::WrongType("a map")),
    }
}

fn has(of: &Value<'_>, name: &str) -> Result<bool, Fault> {
    match of {
        Value::Map(map) => Ok(map.contains_key(name)),
        Value::Call(_) => Ok(matches!(name, "tool" | "status" | "turn")),
        _ => Err(Fault::WrongType("a map")),
    }
}

/// Cuts a key to 64 characters for a message. Keys may come from the state.
fn shortened(name: &str) -> Box<str> {
    name.chars().take(64).collect::<String>().into()
}
