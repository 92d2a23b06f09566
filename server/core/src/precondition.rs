//! Preconditions as they are registered and stored: named predicates over the agent's state (Tool Attention, section 4:
//! precondition gating), CEL expressions, and combinations of both. [`crate::condition`] defines their meaning.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Mistake};

/// Predicate that must hold before a tool may be shown or called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// The scope is granted.
    IsAuthenticated(String),
    /// The tool name of a succeeded prior call begins with the prefix, with or without its `mcp__{server}__`.
    HasPriorToolOutput(String),
    /// The milestone was reached.
    MilestoneReached(String),
    /// Every inner precondition holds.
    All(Vec<Precondition>),
    /// At least one inner precondition holds.
    Any(Vec<Precondition>),
    /// The inner precondition does not hold.
    Not(Box<Precondition>),
    /// The CEL expression is true.
    Cel(String),
}

impl Precondition {
    /// Returns the conditions that must all hold. Outermost conjunctions are split into their parts.
    ///
    /// # Errors
    /// Returns a mistake in a CEL expression.
    pub fn conditions(&self) -> Result<Vec<Condition>, Mistake> {
        match self {
            Self::All(inner) => {
                let inner = inner.iter().map(Self::conditions).collect::<Result<Vec<_>, _>>()?;
                Ok(inner.into_iter().flatten().collect())
            }
            other => Ok(vec![other.condition()?]),
        }
    }

    fn condition(&self) -> Result<Condition, Mistake> {
        let list =
            |inner: &[Self]| inner.iter().map(Self::condition).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Self::IsAuthenticated(scope) => Condition::scope(scope),
            Self::HasPriorToolOutput(prefix) => Condition::prior_output(prefix),
            Self::MilestoneReached(name) => Condition::milestone(name),
            Self::All(inner) => Condition::all(&list(inner)?),
            Self::Any(inner) => Condition::any(&list(inner)?),
            Self::Not(inner) => Condition::negation(&inner.condition()?),
            Self::Cel(source) => Condition::compile(source)?,
        })
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsAuthenticated(scope) => write!(f, "is_authenticated({scope:?})"),
            Self::HasPriorToolOutput(prefix) => write!(f, "has_prior_tool_output({prefix:?})"),
            Self::MilestoneReached(name) => write!(f, "milestone_reached({name:?})"),
            Self::All(inner) => write_list(f, "all", inner),
            Self::Any(inner) => write_list(f, "any", inner),
            Self::Not(inner) => write!(f, "not({inner})"),
            Self::Cel(source) => f.write_str(source),
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, name: &str, inner: &[Precondition]) -> fmt::Result {
    let parts: Vec<_> = inner.iter().map(Precondition::to_string).collect();
    write!(f, "{name}({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::Precondition::{
        All, Any, Cel, HasPriorToolOutput, IsAuthenticated, MilestoneReached, Not,
    };
    use super::*;
    use crate::condition::Fuel;
    use crate::state::{AgentState, CallStatus, PriorCall};

    fn state() -> AgentState {
        let call = |tool: &str, status| PriorCall { tool: tool.to_owned(), status, turn: 0 };
        AgentState {
            scopes: ["issues:write".to_owned()].into(),
            calls: vec![
                call("mcp__git__git_status", CallStatus::Succeeded),
                call("git_push", CallStatus::Failed),
            ],
            milestones: ["plan_approved".to_owned()].into(),
            ..AgentState::default()
        }
    }

    #[track_caller]
    fn check(precondition: &Precondition, unmet: &[&str]) {
        let conditions = precondition.conditions().expect("conditions");
        let holds = |c: &Condition| c.holds(&state(), &mut Fuel::default()).expect("an answer");
        let failing = conditions.iter().filter(|condition| !holds(condition));
        let failing: Vec<_> = failing.map(Condition::to_string).collect();
        assert_eq!(failing, unmet, "{precondition}");
    }

    #[test]
    fn named_predicates() {
        check(&IsAuthenticated("issues:write".into()), &[]);
        check(&IsAuthenticated("issues".into()), &["is_authenticated(\"issues\")"]);
        check(&HasPriorToolOutput("git_status".into()), &[]);
        check(&HasPriorToolOutput("mcp__git__".into()), &[]);
        check(&HasPriorToolOutput("git_push".into()), &["has_prior_tool_output(\"git_push\")"]);
        check(&MilestoneReached("plan_approved".into()), &[]);
    }

    #[test]
    fn combinations() {
        let granted = || IsAuthenticated("issues:write".into());
        let a = MilestoneReached("a".into());
        let b = MilestoneReached("b".into());
        check(&Not(Box::new(granted())), &["not(is_authenticated(\"issues:write\"))"]);
        check(&Any(vec![a.clone(), granted()]), &[]);
        let both = &["milestone_reached(\"a\")", "milestone_reached(\"b\")"];
        check(&All(vec![a.clone(), granted(), All(vec![b.clone()])]), both);
        check(&Any(vec![a, b]), &["any(milestone_reached(\"a\"), milestone_reached(\"b\"))"]);
        check(&Any(vec![Cel("1 > 2".into()), granted()]), &[]);
        check(&Cel("1 > 2".into()), &["1 > 2"]);
    }

    #[test]
    fn a_wrong_expression_is_a_mistake_wherever_it_stands() {
        let wrong = Not(Box::new(All(vec![Cel("nobody == 1".into())])));
        assert!(wrong.conditions().expect_err("a mistake").problem.contains("nobody"));
    }
}
