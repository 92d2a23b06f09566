//! Types of conditions: the part of CEL's types that conditions use, and the fields of namespaces.

use std::fmt;

/// Type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int,
    Double,
    String,
    Null,
    Timestamp,
    Duration,
    List(Box<Type>),
    /// Map from names to values of any type.
    Map,
    /// Element of `state.calls`.
    Call,
    /// Type that is known only when the condition is evaluated.
    Dyn,
    /// Namespace `state`, `tool`, `tool.annotations` or `principal`. Only its fields are values.
    Namespace(Namespace),
}

/// Name that has fields but is no value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    State,
    Tool,
    Annotations,
    Principal,
}

impl Namespace {
    /// Returns the name that expressions use for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Tool => "tool",
            Self::Annotations => "tool.annotations",
            Self::Principal => "principal",
        }
    }

    /// Returns the names of its fields, for messages.
    pub(super) fn fields(self) -> &'static str {
        match self {
            Self::State => "scopes, calls, milestones, attributes",
            Self::Tool => "server, name, model_name, tags, annotations",
            Self::Annotations => "readOnlyHint, destructiveHint, idempotentHint, openWorldHint",
            Self::Principal => "id",
        }
    }
}

impl Type {
    pub(super) fn is(&self, wanted: &Self) -> bool {
        self == wanted || *self == Self::Dyn
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double | Self::Dyn)
    }

    /// Returns true if a value of one type may equal a value of the other.
    pub(super) fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Namespace(_), _) | (_, Self::Namespace(_)) => false,
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(a), Self::List(b)) => a.may_equal(b),
            (a, b) => a == b || (a.is_number() && b.is_number()),
        }
    }

    /// Returns the type of a value that has one type or the other.
    pub(super) fn join(self, other: &Self) -> Self {
        if self == *other { self } else { Self::Dyn }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(inner) => write!(f, "list({inner})"),
            Self::Map => f.write_str("map(string, dyn)"),
            Self::Call => f.write_str("call"),
            Self::Dyn => f.write_str("dyn"),
            Self::Namespace(of) => f.write_str(of.name()),
        }
    }
}
