//! Deterministic predicates over the agent's state (Tool Attention, section 4: precondition gating), and
//! what would have to change for one to hold. No input but the state takes part.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::state::AgentState;

/// A predicate that must hold before a tool may be shown or called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// The scope is granted.
    IsAuthenticated(String),
    /// A succeeded prior call's tool name begins with the prefix; `mcp__{server}__` is looked past.
    HasPriorToolOutput(String),
    /// The milestone was reached.
    MilestoneReached(String),
    /// Each holds.
    All(Vec<Precondition>),
    /// At least one holds.
    Any(Vec<Precondition>),
    /// It does not hold.
    Not(Box<Precondition>),
}

impl Precondition {
    /// Whether the state satisfies it.
    #[must_use]
    pub fn holds(&self, state: &AgentState) -> bool {
        match self {
            Self::IsAuthenticated(scope) => state.scopes.contains(scope),
            Self::HasPriorToolOutput(prefix) => has_prior_output(state, prefix),
            Self::MilestoneReached(name) => state.milestones.contains(name),
            Self::All(inner) => inner.iter().all(|p| p.holds(state)),
            Self::Any(inner) => inner.iter().any(|p| p.holds(state)),
            Self::Not(inner) => !inner.holds(state),
        }
    }

    /// The unmet parts, outermost conjunctions taken apart: each of them is needed. Empty when it holds.
    #[must_use]
    pub fn unmet(&self, state: &AgentState) -> Vec<String> {
        if self.holds(state) {
            return Vec::new();
        }
        match self {
            Self::All(inner) => inner.iter().flat_map(|p| p.unmet(state)).collect(),
            other => vec![other.to_string()],
        }
    }
}

/// Everything that one tool asks of the state: its own conditions and its MCP server's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Scopes that must be granted, sorted, without repetition.
    pub scopes: Vec<String>,
    /// Preconditions that must hold, all of them.
    pub preconditions: Vec<Precondition>,
}

impl Requirement {
    /// Whether the state satisfies it.
    #[must_use]
    pub fn holds(&self, state: &AgentState) -> bool {
        self.lacks_no_scope(state) && self.preconditions.iter().all(|p| p.holds(state))
    }

    /// Whether every required scope is granted.
    #[must_use]
    pub fn lacks_no_scope(&self, state: &AgentState) -> bool {
        self.scopes.iter().all(|scope| state.scopes.contains(scope))
    }

    /// What would unlock the tool: each of them is needed. Empty when it holds.
    #[must_use]
    pub fn unmet(&self, state: &AgentState) -> Vec<String> {
        let missing = self.scopes.iter().filter(|scope| !state.scopes.contains(*scope));
        let scopes = missing.map(|scope| format!("scope {scope:?}"));
        scopes.chain(self.preconditions.iter().flat_map(|p| p.unmet(state))).collect()
    }
}

fn has_prior_output(state: &AgentState, prefix: &str) -> bool {
    state.calls.iter().filter(|call| call.succeeded).any(|call| {
        let bare = call.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        call.tool.starts_with(prefix) || bare.is_some_and(|(_, name)| name.starts_with(prefix))
    })
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
        All, Any, HasPriorToolOutput, IsAuthenticated, MilestoneReached, Not,
    };
    use super::*;
    use crate::state::PriorCall;

    fn state() -> AgentState {
        let call = |tool: &str, succeeded| PriorCall { tool: tool.to_owned(), succeeded, turn: 0 };
        AgentState {
            scopes: ["issues:write".to_owned()].into(),
            calls: vec![call("mcp__git__git_status", true), call("git_push", false)],
            milestones: ["plan_approved".to_owned()].into(),
            ..AgentState::default()
        }
    }

    fn check(precondition: &Precondition, expected: bool, unmet: &[&str]) {
        assert_eq!(precondition.holds(&state()), expected, "{precondition}");
        assert_eq!(precondition.unmet(&state()), unmet, "{precondition}");
    }

    #[test]
    fn named_predicates() {
        check(&IsAuthenticated("issues:write".into()), true, &[]);
        check(&IsAuthenticated("issues".into()), false, &["is_authenticated(\"issues\")"]);
        check(&HasPriorToolOutput("git_status".into()), true, &[]);
        check(&HasPriorToolOutput("mcp__git__".into()), true, &[]);
        let failed = &["has_prior_tool_output(\"git_push\")"];
        check(&HasPriorToolOutput("git_push".into()), false, failed);
        check(&MilestoneReached("plan_approved".into()), true, &[]);
    }

    #[test]
    fn combinations() {
        let granted = || IsAuthenticated("issues:write".into());
        let (a, b) = (MilestoneReached("a".into()), MilestoneReached("b".into()));
        check(&Not(Box::new(granted())), false, &["not(is_authenticated(\"issues:write\"))"]);
        check(&Any(vec![a.clone(), granted()]), true, &[]);
        let both = &["milestone_reached(\"a\")", "milestone_reached(\"b\")"];
        check(&All(vec![a.clone(), granted(), b.clone()]), false, both);
        let either = &["any(milestone_reached(\"a\"), milestone_reached(\"b\"))"];
        check(&Any(vec![a, b]), false, either);
    }
}
