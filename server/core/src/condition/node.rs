//! Checked condition, as it is evaluated. Equal nodes give equal answers, so that a condition that many tools share is
//! evaluated once.

use super::pattern::Pattern;

/// Expression whose types are known to fit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Constant(Constant),
    Input(Input),
    /// Field of the tool, until the condition is bound to a tool.
    Tool(ToolField),
    /// Variable of a macro, counted from the outermost macro.
    Local(usize),
    Field(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    Index(Box<Node>, Box<Node>),
    List(Vec<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If(Box<[Node; 3]>),
    Equal(Box<Node>, Box<Node>),
    Order(Order, Box<Node>, Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    In(Box<Node>, Box<Node>),
    Size(Box<Node>),
    Text(TextTest, Box<Node>, Box<Node>),
    Matches(Box<Node>, Pattern),
    Calendar(CalendarField, Box<Node>),
    Quantified(Quantifier, Box<Node>, Box<Node>),
    /// List of the elements for which the filter holds, each transformed by the last node.
    Collect(Box<Node>, Option<Box<Node>>, Box<Node>),
    /// Test for a succeeded prior call whose tool name begins with this prefix.
    PriorOutput(Box<str>),
}

/// Value that is known before the evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    /// Bits of an `f64`.
    Double(u64),
    Text(Box<str>),
    Texts(Box<[Box<str>]>),
    /// Milliseconds since 1970 (UTC).
    Timestamp(i64),
    /// Milliseconds.
    Duration(i64),
}

/// Part of the state that a condition may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Input {
    Scopes,
    Calls,
    Milestones,
    Attributes,
    Principal,
    Now,
}

/// Part of the tool that a condition may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ToolField {
    Server,
    Name,
    ModelName,
    Tags,
    Hint(Hint),
}

/// Annotations of MCP that are true or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Hint {
    ReadOnly,
    Destructive,
    Idempotent,
    OpenWorld,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CalendarField {
    FullYear,
    Month,
    DayOfMonth,
    Date,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
}

impl Node {
    pub(super) fn text(text: &str) -> Self {
        Self::Constant(Constant::Text(text.into()))
    }

    pub(super) fn bool(value: bool) -> Self {
        Self::Constant(Constant::Bool(value))
    }
}
