//! Functions and methods that conditions may call.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::{Lowered, Lowering, typed, wrong};
use crate::condition::calendar;
use crate::condition::node::{CalendarField, Constant, Node, TextTest};
use crate::condition::pattern::Pattern;
use crate::condition::types::Type;

/// List of the known names, for messages about unknown ones.
const KNOWN: &str = "there are size, startsWith, endsWith, contains, matches, timestamp, duration, has, \
     the macros all, exists, exists_one, map and filter, and getFullYear to getSeconds of a timestamp";

impl Lowering {
    pub(super) fn function(&mut self, expression: &IdedExpr, call: &CallExpr) -> Lowered {
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("size", [of]) => self.size(of),
            ("matches", [text, pattern]) => self.matches(text, pattern),
            ("timestamp", [text]) => {
                let problem =
                    "must be a literal as RFC 3339 has it, such as \"2026-11-20T17:00:00Z\"";
                let ms = text_of(text).and_then(calendar::timestamp);
                let Some(ms) = ms else { return wrong(text, problem) };
                typed(Node::Constant(Constant::Timestamp(ms)), Type::Timestamp)
            }
            ("duration", [text]) => {
                let problem = "must be a literal of h, m, s and ms, such as \"1h30m\"";
                let ms = text_of(text).and_then(calendar::duration);
                let Some(ms) = ms else { return wrong(text, problem) };
                typed(Node::Constant(Constant::Duration(ms)), Type::Duration)
            }
            (name, arguments) => unknown(expression, name, arguments.len()),
        }
    }

    pub(super) fn method(
        &mut self,
        expression: &IdedExpr,
        target: &IdedExpr,
        call: &CallExpr,
    ) -> Lowered {
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("size", []) => self.size(target),
            ("startsWith", [part]) => self.text(TextTest::StartsWith, target, part),
            ("endsWith", [part]) => self.text(TextTest::EndsWith, target, part),
            ("contains", [part]) => self.text(TextTest::Contains, target, part),
            ("matches", [pattern]) => self.matches(target, pattern),
            (name, []) if field(name).is_some() => {
                let moment = self.operand(target, &Type::Timestamp)?;
                let field = field(name).unwrap_or(CalendarField::FullYear);
                typed(Node::Calendar(field, Box::new(moment)), Type::Int)
            }
            (name, arguments) => unknown(expression, name, arguments.len()),
        }
    }

    fn size(&mut self, of: &IdedExpr) -> Lowered {
        let lowered = self.value(of)?;
        match lowered.of {
            Type::String | Type::List(_) | Type::Map | Type::Dyn => {
                typed(Node::Size(Box::new(lowered.node)), Type::Int)
            }
            other => wrong(of, format!("a {other} has no size")),
        }
    }

    fn text(&mut self, test: TextTest, text: &IdedExpr, part: &IdedExpr) -> Lowered {
        let text = self.operand(text, &Type::String)?;
        let part = self.operand(part, &Type::String)?;
        typed(Node::Text(test, Box::new(text), Box::new(part)), Type::Bool)
    }

    fn matches(&mut self, text: &IdedExpr, pattern: &IdedExpr) -> Lowered {
        let text = self.operand(text, &Type::String)?;
        let Some(literal) = text_of(pattern) else {
            return wrong(pattern, "a pattern must be a literal string");
        };
        match Pattern::compile(literal) {
            Ok(pattern) => typed(Node::Matches(Box::new(text), pattern), Type::Bool),
            Err(problem) => wrong(pattern, problem),
        }
    }
}

fn unknown(expression: &IdedExpr, name: &str, arguments: usize) -> Lowered {
    let plural = if arguments == 1 { "argument" } else { "arguments" };
    wrong(expression, format!("unknown function `{name}` of {arguments} {plural}: {KNOWN}"))
}

fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn field(name: &str) -> Option<CalendarField> {
    Some(match name {
        "getFullYear" => CalendarField::FullYear,
        "getMonth" => CalendarField::Month,
        "getDayOfMonth" => CalendarField::DayOfMonth,
        "getDate" => CalendarField::Date,
        "getDayOfWeek" => CalendarField::DayOfWeek,
        "getDayOfYear" => CalendarField::DayOfYear,
        "getHours" => CalendarField::Hours,
        "getMinutes" => CalendarField::Minutes,
        "getSeconds" => CalendarField::Seconds,
        _ => return None,
    })
}
